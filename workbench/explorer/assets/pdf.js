// Write a drawn chart as a PDF of lines and letters. 12 pixels become 8 points on paper.
//
// The fonts are standard fonts that every PDF reader has.

const POINTS_PER_PIXEL = 2 / 3;
const HALF_CIRCLE_STEPS = 12;

// The letters of the font Symbol for Greek letters, and ASCII replacements of other letters.
const SYMBOL_LETTERS = {
  "ε": "e", "δ": "d", "ρ": "r", "μ": "m", "α": "a", "β": "b", "η": "h", "τ": "t",
};
const ASCII_LETTERS = {
  "…": "...", "–": "-", "−": "-", "₁": "1", "₂": "2", "≥": ">=", "≤": "<=",
};

// Translate the path data that charts.js writes to operators of PDF.
function translatePath(d) {
  const tokens = d.match(/[a-zA-Z]|-?[\d.]+(?:e-?\d+)?/g) ?? [];
  const operators = [];
  let x = 0;
  let y = 0;
  let command = "";
  let position = 0;
  const readNumber = () => Number(tokens[position++]);
  const moveTo = (operator) => operators.push(`${x.toFixed(2)} ${y.toFixed(2)} ${operator}`);
  while (position < tokens.length) {
    if (/[a-zA-Z]/.test(tokens[position])) command = tokens[position++];
    const isRelative = command === command.toLowerCase();
    const [originX, originY] = isRelative ? [x, y] : [0, 0];
    switch (command.toUpperCase()) {
      case "Z":
        operators.push("h");
        break;
      case "H":
        x = originX + readNumber();
        moveTo("l");
        break;
      case "V":
        y = originY + readNumber();
        moveTo("l");
        break;
      case "A": {
        // Markers only have half circles, to the right or to the left.
        const radius = readNumber();
        const startX = x;
        const startY = y;
        position += 4;
        const dx = readNumber();
        readNumber();
        for (let step = 1; step <= HALF_CIRCLE_STEPS; step++) {
          const angle = (Math.PI * step) / HALF_CIRCLE_STEPS;
          x = startX + (dx / 2) * (1 - Math.cos(angle));
          y = startY + Math.sign(dx) * radius * Math.sin(angle);
          moveTo("l");
        }
        y = startY;
        break;
      }
      default:
        x = originX + readNumber();
        y = originY + readNumber();
        moveTo(command.toUpperCase() === "M" ? "m" : "l");
        // Further pairs of numbers after a move are lines.
        if (command === "M") command = "L";
        if (command === "m") command = "l";
    }
  }
  return operators.join(" ");
}

// Translate the outline of an SVG element to operators of PDF.
function translateShape(node) {
  const number = (name) => Number(node.getAttribute(name) ?? 0);
  switch (node.tagName) {
    case "path":
      return translatePath(node.getAttribute("d") ?? "");
    case "line":
      return `${number("x1")} ${number("y1")} m ${number("x2")} ${number("y2")} l`;
    case "rect":
      return `${number("x")} ${number("y")} ${number("width")} ${number("height")} re`;
    case "circle":
      return translatePath(MARKER_PATHS[0](number("cx"), number("cy"), number("r")));
    default:
      return "";
  }
}

// Translate an SVG text to operators of PDF. measure: a canvas context that measures texts.
function translateText(node, style, measure) {
  const size = parseFloat(style.fontSize);
  const isBold = Number(style.fontWeight) >= 600;
  const text = node.textContent.replace(/[…–−₁₂≥≤]/g, (letter) => ASCII_LETTERS[letter]);
  measure.font = `${isBold ? "bold " : ""}${size}px Helvetica, Arial, "Liberation Sans", sans-serif`;
  const width = measure.measureText(text).width;
  let x = Number(node.getAttribute("x"));
  const anchor = node.getAttribute("text-anchor");
  if (anchor === "end") x -= width;
  if (anchor === "middle") x -= width / 2;
  const escape = (run) => run.replace(/[\\()]/g, "\\$&").replace(/[^\x20-\xff]/g, "?");
  const runs = text.match(/[εδρμαβητ]+|[^εδρμαβητ]+/g) ?? [];
  const operators = runs.map((run) => {
    if (!SYMBOL_LETTERS[run[0]]) return `/${isBold ? "F3" : "F1"} ${size} Tf (${escape(run)}) Tj`;
    const letters = [...run].map((letter) => SYMBOL_LETTERS[letter]).join("");
    return `/F2 ${size} Tf (${letters}) Tj`;
  });
  return `BT 1 0 0 -1 ${x.toFixed(2)} ${node.getAttribute("y")} Tm ${operators.join(" ")} ET`;
}

// Translate a CSS colour to the three numbers of PDF; null for a transparent colour.
function translateColour(text) {
  const pattern = /rgba?\(([\d.]+), ?([\d.]+), ?([\d.]+)(?:, ?([\d.]+))?\)|rgb\((\d+),(\d+),(\d+)\)/;
  const match = toRgb(text).match(pattern);
  if (!match || match[4] === "0") return null;
  return [1, 2, 3].map((index) => (Number(match[index] ?? match[index + 4]) / 255).toFixed(3)).join(" ");
}

// Choose the operator that fills and strokes a shape.
function paintOperator(hasFill, hasStroke) {
  if (hasFill && hasStroke) return "B";
  if (hasFill) return "f";
  return hasStroke ? "S" : "n";
}

// Write the objects of a PDF file with their table of positions.
function assemblePdf(objects) {
  let text = "%PDF-1.4\n";
  const positions = objects.map((object, index) => {
    const position = text.length;
    text += `${index + 1} 0 obj\n${object}\nendobj\n`;
    return position;
  });
  const tableStart = text.length;
  const lines = positions.map((position) => `${String(position).padStart(10, "0")} 00000 n \n`);
  text += `xref\n0 ${objects.length + 1}\n0000000000 65535 f \n${lines.join("")}`;
  text += `trailer\n<< /Size ${objects.length + 1} /Root 1 0 R >>\nstartxref\n${tableStart}\n%%EOF\n`;
  return Uint8Array.from(text, (letter) => letter.charCodeAt(0) & 255);
}

// Write a chart as the bytes of a PDF file, in the light theme.
function writePdf(chart, page) {
  const [, , width, height] = chart.getAttribute("viewBox").split(" ").map(Number);
  const pageWidth = (width * POINTS_PER_PIXEL).toFixed(2);
  const pageHeight = (height * POINTS_PER_PIXEL).toFixed(2);
  const measure = document.createElement("canvas").getContext("2d");
  const stateNames = new Map();  // "fill opacity, stroke opacity" -> the name of a graphics state
  const parts = [`${POINTS_PER_PIXEL} 0 0 ${-POINTS_PER_PIXEL} 0 ${height * POINTS_PER_PIXEL} cm 1 j`];
  withLightTheme(page, () => {
    const inverse = chart.getScreenCTM().inverse();
    for (const node of chart.querySelectorAll("path, line, rect, circle, text")) {
      const style = getComputedStyle(node);
      const isUnfilled = style.fill === "none" || node.tagName === "line";
      const fill = isUnfilled ? null : translateColour(style.fill);
      const stroke = style.stroke === "none" ? null : translateColour(style.stroke);
      const opacity = Number(style.opacity);
      const fillOpacity = Number(style.fillOpacity) * opacity;
      const isInvisible = fill && fillOpacity === 0 && !stroke;
      if (node.style.cursor || isInvisible) continue;
      const state = `${fillOpacity} ${opacity}`;
      if (!stateNames.has(state)) stateNames.set(state, `G${stateNames.size}`);
      const matrix = inverse.multiply(node.getScreenCTM());
      const entries = ["a", "b", "c", "d", "e", "f"].map((name) => matrix[name].toFixed(4));
      const isDashed = style.strokeDasharray !== "none";
      const dash = isDashed ? `[${style.strokeDasharray.match(/[\d.]+/g).join(" ")}] 0 d` : "";
      const setFill = fill ? `${fill} rg` : "";
      const setStroke = stroke ? `${stroke} RG ${parseFloat(style.strokeWidth)} w ${dash}` : "";
      const paint = node.tagName === "text"
        ? translateText(node, style, measure)
        : `${translateShape(node)} ${paintOperator(fill, stroke)}`;
      const setState = `/${stateNames.get(state)} gs`;
      parts.push(`q ${entries.join(" ")} cm ${setState} ${setFill} ${setStroke} ${paint} Q`);
    }
  });
  const content = parts.join("\n");
  const makeFont = (name, encoding = "/Encoding /WinAnsiEncoding ") => (
    `<< /Type /Font /Subtype /Type1 /BaseFont /${name} ${encoding}>>`
  );
  const states = [...stateNames].map(([state, name]) => {
    const [fillOpacity, opacity] = state.split(" ");
    return `/${name} << /ca ${fillOpacity} /CA ${opacity} >>`;
  });
  const fonts = "/Font << /F1 5 0 R /F2 6 0 R /F3 7 0 R >>";
  const resources = `<< ${fonts} /ExtGState << ${states.join(" ")} >> >>`;
  const mediaBox = `/MediaBox [0 0 ${pageWidth} ${pageHeight}]`;
  return assemblePdf([
    "<< /Type /Catalog /Pages 2 0 R >>",
    "<< /Type /Pages /Kids [3 0 R] /Count 1 >>",
    `<< /Type /Page /Parent 2 0 R ${mediaBox} /Contents 4 0 R /Resources ${resources} >>`,
    `<< /Length ${content.length} >>\nstream\n${content}\nendstream`,
    makeFont("Helvetica"),
    makeFont("Symbol", ""),
    makeFont("Helvetica-Bold"),
  ]);
}
