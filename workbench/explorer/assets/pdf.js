// A drawn chart as PDF with lines and letters, for a page of paper: 12 px are 8 pt. Fonts are those every reader has.

const POINT = 2 / 3, GREEK = { "ε": "e", "δ": "d", "ρ": "r", "μ": "m", "α": "a", "β": "b", "η": "h", "τ": "t" };
const PLAIN = { "…": "...", "–": "-", "−": "-", "₁": "1", "₂": "2", "≥": ">=", "≤": "<=" };

// A path of the commands that charts.js writes, as operators of PDF.
function operators(d) {
  const tokens = d.match(/[a-zA-Z]|-?[\d.]+(?:e-?\d+)?/g) ?? [], found = [];
  let x = 0, y = 0, command = "", k = 0;
  const next = () => Number(tokens[k++]), go = (letter) => found.push(`${x.toFixed(2)} ${y.toFixed(2)} ${letter}`);
  while (k < tokens.length) {
    if (/[a-zA-Z]/.test(tokens[k])) command = tokens[k++];
    const own = command === command.toLowerCase(), at = own ? [x, y] : [0, 0];
    switch (command.toUpperCase()) {
      case "Z": found.push("h"); break;
      case "H": x = at[0] + next(); go("l"); break;
      case "V": y = at[1] + next(); go("l"); break;
      case "A": {  // half a circle, to the right or the left
        const radius = next(), from = [x, y];
        k += 4; const dx = next(); next();
        for (let j = 1; j <= 12; j++) { const t = (Math.PI * j) / 12; x = from[0] + (dx / 2) * (1 - Math.cos(t)); y = from[1] + Math.sign(dx) * radius * Math.sin(t); go("l"); }
        y = from[1]; break;
      }
      default: { x = at[0] + next(); y = at[1] + next(); go(command.toUpperCase() === "M" ? "m" : "l"); if (command === "M") command = "L"; if (command === "m") command = "l"; }
    }
  }
  return found.join(" ");
}

function shapeOf(node) {
  const number = (name) => Number(node.getAttribute(name) ?? 0);
  if (node.tagName === "path") return operators(node.getAttribute("d") ?? "");
  if (node.tagName === "line") return `${number("x1")} ${number("y1")} m ${number("x2")} ${number("y2")} l`;
  if (node.tagName === "rect") return `${number("x")} ${number("y")} ${number("width")} ${number("height")} re`;
  if (node.tagName === "circle") return operators(SHAPES[0](number("cx"), number("cy"), number("r")) );
  return "";
}

function lettered(node, style, measure) {
  const size = parseFloat(style.fontSize), bold = Number(style.fontWeight) >= 600, text = node.textContent.replace(/[…–−₁₂≥≤]/g, (one) => PLAIN[one]);
  measure.font = `${bold ? "bold " : ""}${size}px Helvetica, Arial, "Liberation Sans", sans-serif`;
  const anchor = node.getAttribute("text-anchor"), wide = measure.measureText(text).width, start = Number(node.getAttribute("x")) - (anchor === "end" ? wide : anchor === "middle" ? wide / 2 : 0);
  const runs = text.match(/[εδρμαβητ]+|[^εδρμαβητ]+/g) ?? [], quoted = (run) => run.replace(/[\\()]/g, "\\$&").replace(/[^\x20-\xff]/g, "?");
  const shown = runs.map((run) => (GREEK[run[0]] ? `/F2 ${size} Tf (${[...run].map((one) => GREEK[one]).join("")}) Tj` : `/${bold ? "F3" : "F1"} ${size} Tf (${quoted(run)}) Tj`)).join(" ");
  return `BT 1 0 0 -1 ${start.toFixed(2)} ${node.getAttribute("y")} Tm ${shown} ET`;
}

function printed(root, page) {
  const before = page.dataset.theme;
  page.dataset.theme = "light";
  const [, , width, height] = root.getAttribute("viewBox").split(" ").map(Number), inverse = root.getScreenCTM().inverse();
  const measure = document.createElement("canvas").getContext("2d"), shades = new Map(), parts = [`${POINT} 0 0 ${-POINT} 0 ${height * POINT} cm 1 j`];
  const colour = (text) => { const found = plainColour(text).match(/rgba?\(([\d.]+), ?([\d.]+), ?([\d.]+)(?:, ?([\d.]+))?\)|rgb\((\d+),(\d+),(\d+)\)/); return found && found[4] !== "0" ? [1, 2, 3].map((k) => (Number(found[k] ?? found[k + 4]) / 255).toFixed(3)).join(" ") : null; };
  for (const node of root.querySelectorAll("path, line, rect, circle, text")) {
    const style = getComputedStyle(node), fill = style.fill === "none" || node.tagName === "line" ? null : colour(style.fill), stroke = style.stroke === "none" ? null : colour(style.stroke);
    const clear = Number(style.opacity), see = Number(style.fillOpacity) * clear;
    if (node.style.cursor || (fill && see === 0 && !stroke)) continue;
    const matrix = inverse.multiply(node.getScreenCTM()), key = `${see} ${clear}`;
    if (!shades.has(key)) shades.set(key, `G${shades.size}`);
    const set = ["a", "b", "c", "d", "e", "f"].map((name) => matrix[name].toFixed(4)).join(" ");
    const dash = style.strokeDasharray === "none" ? "" : `[${style.strokeDasharray.match(/[\d.]+/g).join(" ")}] 0 d`;
    const paint = node.tagName === "text" ? lettered(node, style, measure) : `${shapeOf(node)} ${fill && stroke ? "B" : fill ? "f" : stroke ? "S" : "n"}`;
    parts.push(`q ${set} cm /${shades.get(key)} gs ${fill ? `${fill} rg` : ""} ${stroke ? `${stroke} RG ${parseFloat(style.strokeWidth)} w ${dash}` : ""} ${paint} Q`);
  }
  if (before) page.dataset.theme = before; else delete page.dataset.theme;
  const content = parts.join("\n"), font = (name, more = "/Encoding /WinAnsiEncoding ") => `<< /Type /Font /Subtype /Type1 /BaseFont /${name} ${more}>>`;
  const states = [...shades].map(([key, name]) => { const [see, clear] = key.split(" "); return `/${name} << /ca ${see} /CA ${clear} >>`; }).join(" ");
  const objects = ["<< /Type /Catalog /Pages 2 0 R >>", "<< /Type /Pages /Kids [3 0 R] /Count 1 >>",
    `<< /Type /Page /Parent 2 0 R /MediaBox [0 0 ${(width * POINT).toFixed(2)} ${(height * POINT).toFixed(2)}] /Contents 4 0 R /Resources << /Font << /F1 5 0 R /F2 6 0 R /F3 7 0 R >> /ExtGState << ${states} >> >> >>`,
    `<< /Length ${content.length} >>\nstream\n${content}\nendstream`, font("Helvetica"), font("Symbol", ""), font("Helvetica-Bold")];
  let text = "%PDF-1.4\n";
  const places = objects.map((object, k) => { const at = text.length; text += `${k + 1} 0 obj\n${object}\nendobj\n`; return at; });
  const start = text.length, table = places.map((at) => `${String(at).padStart(10, "0")} 00000 n \n`).join("");
  text += `xref\n0 ${objects.length + 1}\n0000000000 65535 f \n${table}trailer\n<< /Size ${objects.length + 1} /Root 1 0 R >>\nstartxref\n${start}\n%%EOF\n`;
  return Uint8Array.from(text, (letter) => letter.charCodeAt(0) & 255);
}
