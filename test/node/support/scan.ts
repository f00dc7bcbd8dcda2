import type { Locator } from "playwright-core";
import decodeQr from "qr/decode.js";

/**
 * Reads a QR code off the screen, as a phone's camera does.
 *
 * @param scale `css`: one pixel for each of CSS; `device`: as many as the screen has
 */
export async function scan(code: Locator, scale: "css" | "device" = "css"): Promise<string> {
  const png = (await code.screenshot({ scale })).toString("base64");
  const { width, height, data } = await code.page().evaluate(async (base64) => {
    const bytes = Uint8Array.from(atob(base64), (character) => character.charCodeAt(0));
    const bitmap = await createImageBitmap(new Blob([bytes], { type: "image/png" }));
    const { width, height } = bitmap;
    const drawing = new OffscreenCanvas(width, height).getContext("2d");
    drawing?.drawImage(bitmap, 0, 0);
    const pixels = drawing?.getImageData(0, 0, width, height).data ?? new Uint8ClampedArray();
    // As an array of numbers they would take a second to be sent.
    return { width, height, data: Array.from(pixels, (byte) => String.fromCharCode(byte)).join("") };
  }, png);
  return decodeQr({ width, height, data: Uint8ClampedArray.from(Buffer.from(data, "latin1")) });
}
