import type { OperationResult } from "./results.ts";

const [WIDTH, LEFT, RIGHT, TOP, BAR, ROW, BOTTOM] = [760, 250, 70, 64, 11, 38, 28];

/** The colours are readable on white; a dark page gets its own, as far as the viewer tells. */
const STYLE = `
  text { font: 13px system-ui, -apple-system, "Segoe UI", sans-serif; fill: #24292f }
  .faint { fill: #57606a; font-size: 12px }
  .value { fill: #ffffff; font-size: 10px }
  .service { fill: #0969da } .peer { fill: #8c959f }
  .floor { stroke: #cf222e; stroke-width: 1.5; stroke-dasharray: 4 3 } .floor-text { fill: #cf222e; font-size: 12px }
  @media (prefers-color-scheme: dark) {
    text { fill: #e6edf3 } .faint { fill: #9198a1 }
    .value { fill: #ffffff; font-size: 10px }
  .service { fill: #4493f8 } .peer { fill: #6e7681 }
    .floor { stroke: #f85149 } .floor-text { fill: #f85149 }
  }`;

/** An SVG chart: the throughput of service and peer as shares of the floor's, one group of bars an operation. */
export function chart(results: readonly OperationResult[]): string {
  const shares = results.map(({ name, throughput, floor, peer }) => {
    return { name, service: throughput.median, peer: peer.rps / floor.rps };
  });
  const scale = (WIDTH - LEFT - RIGHT) / Math.max(1, ...shares.flatMap(({ service, peer }) => [service, peer]));
  const height = TOP + shares.length * ROW + BOTTOM;
  const floorAt = (LEFT + scale).toFixed(1);
  const bar = (side: "service" | "peer", share: number, y: number) => [
    `<rect class="${side}" x="${LEFT}" y="${y}" width="${(share * scale).toFixed(1)}" height="${BAR}" rx="2"/>`,
    `<text class="value" x="${LEFT + 6}" y="${y + BAR - 2}">${share.toFixed(2)}</text>`,
  ];
  const title = "Throughput with 64 clients, as a share of the floor's";
  return `${[
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${WIDTH} ${height}" role="img" aria-label="${title}">`,
    `<style>${STYLE}\n</style>`,
    `<text x="10" y="22">${title}</text>`,
    `<rect class="service" x="10" y="34" width="${BAR}" height="${BAR}"/><text class="faint" x="26" y="44">service</text>`,
    `<rect class="peer" x="84" y="34" width="${BAR}" height="${BAR}"/><text class="faint" x="100" y="44">peer: Hono and D1 alone</text>`,
    ...shares.flatMap(({ name, service, peer }, place) => {
      const y = TOP + place * ROW;
      const label = `<text x="${LEFT - 10}" y="${y + 16}" text-anchor="end">${name}</text>`;
      return [label, ...bar("service", service, y), ...bar("peer", peer, y + BAR + 2)];
    }),
    `<line class="floor" x1="${floorAt}" x2="${floorAt}" y1="${TOP - 8}" y2="${height - BOTTOM}"/>`,
    `<text class="floor-text" x="${floorAt}" y="${height - 10}" text-anchor="middle">floor: hand-written, the same platform calls</text>`,
    "</svg>",
  ].join("\n")}\n`;
}
