// Numbers and words for people

export const percent = (x, digits = 1) => `${(100 * x).toFixed(digits)} %`;
export const interval = ([, accuracy, low, high]) => {
  const digits = high - low < 0.002 ? 2 : 1;
  return `${percent(accuracy, digits)} (${(100 * low).toFixed(digits)} to ${(100 * high).toFixed(digits)})`;
};

/** Numbers for people: 0.12, 0.0034, 5.6 × 10⁻⁷, 0. */
export function short(x) {
  if (x >= 0.00095 || x === 0) return x >= 0.0995 ? x.toFixed(2) : `${+x.toPrecision(2)}`;
  const [digits, exponent] = x.toExponential(1).split("e-");
  return `${digits} × 10⁻${[...exponent].map((digit) => "⁰¹²³⁴⁵⁶⁷⁸⁹"[digit]).join("")}`;
}

export const signed = (x, digits = 2) => `${x <= -0.5 / 10 ** digits ? "−" : ""}${Math.abs(x).toFixed(digits)}`;

/** A text as Python and JavaScript write it, on one line whatever it holds. */
export const quoted = JSON.stringify;
