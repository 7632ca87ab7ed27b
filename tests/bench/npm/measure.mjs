// What the two measurements share.
export const sleep = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

// p50, p99 and the longest.
export function percentiles(ms) {
  ms.sort((a, b) => a - b);
  return [ms[ms.length >> 1], ms[Math.floor(((ms.length - 1) * 99) / 100)], ms[ms.length - 1]].map((x) => x.toFixed(3)).join(" ");
}
