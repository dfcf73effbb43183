// Understand the texts that people type into a field, such as "0 to 50", "1,5", "10^-5" or "ln(3)".
//
// A text with one exact meaning is replaced by its plain form. A text whose number must be rounded,
// or that has two meanings, is only proposed: the reader accepts the proposal with a click.

const RANGE_FIELDS = ["answers", "range", "clamp", "labels", "outputs"];
const NUMBER_FIELDS = [
  "epsilon", "delta", "rho", "mu", "alpha", "max_shift", "sensitivity", "bits", "max_loss", "low",
  "high", "point", "n", "runs",
];
const ROUNDED_DIGITS = 9;  // A logarithm is proposed with this many significant digits.
const NUMBER = "[-+]?\\d+(?:\\.\\d+)?(?:e[-+]?\\d+)?";
const RANGE_WORDS = new RegExp(`^\\s*(${NUMBER})\\s*(?:to|bis|until|-|–|—|…|\\.{3})\\s*(${NUMBER})\\s*$`, "i");
const WITHIN_BRACKETS = new RegExp(`^\\s*[[(]\\s*(${NUMBER})\\s*[,;]\\s*(${NUMBER})\\s*[\\])]\\s*$`, "i");

// Write a number rounded down with a number of significant digits.
function roundDown(value, digits) {
  const step = 10 ** (Math.floor(Math.log10(Math.abs(value))) + 1 - digits);
  return String(Number((Math.floor(value / step) * step).toPrecision(digits)));
}

// Return the exact plain form of the text of a field. Other texts are returned unchanged.
function readPlainText(name, text) {
  if (typeof text !== "string") return text;
  if (RANGE_FIELDS.includes(name)) {
    const match = text.match(RANGE_WORDS) ?? (name === "range" || name === "clamp" ? text.match(WITHIN_BRACKETS) : null);
    return match ? `${match[1]}..${match[2]}` : text;
  }
  if (!NUMBER_FIELDS.includes(name)) return text;
  const plain = text.trim().replace(/[−–]/g, "-").replace(/\s+/g, "");
  const power = plain.match(/^(?:(\d+(?:\.\d+)?)(?:\*|·|×|x))?10(?:\^|\*\*)\(?([-+]?\d+)\)?$/);
  if (power) return `${power[1] ?? 1}e${Number(power[2])}`;
  // A comma before three digits may separate thousands, so that this text is only proposed.
  if (/^\d+,\d+$/.test(plain) && !/,\d{3}$/.test(plain)) return plain.replace(",", ".");
  const percent = plain.match(/^(\d+)%$/);
  return percent ? `${percent[1]}/100` : text;
}

// Propose a text for one that the workbench does not understand: {text, note}; null for none.
//
// A budget is rounded down, so that the mechanism is private at the budget that was meant.
function proposePlainText(name, text) {
  if (typeof text !== "string" || !NUMBER_FIELDS.includes(name)) return null;
  const plain = text.trim().replace(/\s+/g, "").replace(",", ".");
  const logarithm = plain.match(/^(?:ln|log)\(?(\d+(?:\.\d+)?)\)?$/i);
  if (logarithm && Number(logarithm[1]) > 1) {
    const value = roundDown(Math.log(Number(logarithm[1])), ROUNDED_DIGITS);
    return { text: value, note: ` (ln ${logarithm[1]}, rounded down)` };
  }
  const root = plain.match(/^(?:sqrt|√)\(?(\d+(?:\.\d+)?)\)?$/i);
  if (root && Number(root[1]) > 0) {
    const value = roundDown(Math.sqrt(Number(root[1])), ROUNDED_DIGITS);
    return { text: value, note: ` (the root of ${root[1]}, rounded down)` };
  }
  if (/^\d+\.\d+$/.test(plain) && text.includes(",")) return { text: plain, note: "" };
  return null;
}
