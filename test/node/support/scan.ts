import type { Locator } from "playwright-core";
import decodeQr from "qr/decode.js";

/** Reads a QR code off the screen, as a phone's camera does. */
export async function scan(code: Locator): Promise<string> {
  const png = (await code.screenshot()).toString("base64");
  const { width, height, light } = await code.page().evaluate(async (base64) => {
    const bytes = Uint8Array.from(atob(base64), (character) => character.charCodeAt(0));
    const bitmap = await createImageBitmap(new Blob([bytes], { type: "image/png" }));
    const { width, height } = bitmap;
    const drawing = new OffscreenCanvas(width, height).getContext("2d");
    drawing?.drawImage(bitmap, 0, 0);
    const pixels = drawing?.getImageData(0, 0, width, height).data ?? [];
    // A digit for each pixel: as numbers they would take half a second to be sent.
    const digits = Uint8Array.from({ length: width * height }, (_, place) =>
      (pixels[4 * place] ?? 0) > 127 ? 49 : 48,
    );
    return { width, height, light: new TextDecoder().decode(digits) };
  }, png);
  const data = new Uint8Array(4 * light.length);
  for (const [place, digit] of [...light].entries()) data.fill(digit === "1" ? 255 : 0, 4 * place, 4 * place + 4);
  return decodeQr({ width, height, data });
}
