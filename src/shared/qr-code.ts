import encodeQr from "qr";

/** Modules of light margin that ISO/IEC 18004 demands around a code. */
const QUIET_ZONE = 4;

/** A QR code to draw: `size` modules wide and high with its margin, and an SVG path of the dark ones. */
interface QrDrawing {
  size: number;
  path: string;
}

/**
 * A QR code with only the text as content.
 *
 * @param correction `low` for a long text on a clean screen; `medium` on paper
 * @throws Error if the text is longer than a code's capacity, about 2,900 bytes
 */
export function drawQr(text: string, correction: "low" | "medium"): QrDrawing {
  const rows = encodeQr(text, "raw", { ecc: correction, border: QUIET_ZONE });
  const path = rows.flatMap((row, y) => row.map((isDark, x) => (isDark ? `M${x} ${y}h1v1h-1z` : ""))).join("");
  return { size: rows.length, path };
}
