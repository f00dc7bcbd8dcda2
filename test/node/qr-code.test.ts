import decodeQr from "qr/decode.js";
import { expect, it } from "vitest";
import { drawQr } from "../../src/shared/qr-code.ts";

/** Pixels of each module, as a camera sees it. */
const SCALE = 4;

/** A picture of the code, black on white, as RGBA. */
function picture({ size, path }: ReturnType<typeof drawQr>): Parameters<typeof decodeQr>[0] {
  const width = size * SCALE;
  const data = new Uint8Array(4 * width * width).fill(255);
  for (const [, x, y] of path.matchAll(/M(\d+) (\d+)h1v1h-1z/g)) {
    for (let row = 0; row < SCALE; row++) {
      const start = 4 * ((Number(y) * SCALE + row) * width + Number(x) * SCALE);
      for (let column = 0; column < SCALE; column++) data.fill(0, start + 4 * column, start + 4 * column + 3);
    }
  }
  return { width, height: width, data };
}

it.each([
  ["low", "https://badges.example/pass#app_1/token"],
  ["low", "eyJ".padEnd(900, "aBc.")],
  ["medium", "https://badges.example/pass#app_1/token"],
] as const)("a QR code that is drawn with %s correction can be read (contract section 27)", (correction, text) => {
  const drawing = drawQr(text, correction);
  // After a margin of four modules there is a dark corner.
  expect(drawing.path).toMatch(/^M4 4h1v1h-1z(M\d+ \d+h1v1h-1z)*$/);
  expect(decodeQr(picture(drawing))).toBe(text);
});
