// Numbers and vectors

export const clamp = (x, low, high) => Math.min(Math.max(x, low), high);
export const whole = (x, low, high) => clamp(Math.round(x), low, high);
export const largest = (values) => values.reduce((peak, x) => Math.max(peak, Math.abs(x)), 0);

export function dot(a, b) {
  let sum = 0;
  for (let i = 0; i < a.length; i++) sum += a[i] * b[i];
  return sum;
}
