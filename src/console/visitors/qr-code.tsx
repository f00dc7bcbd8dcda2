import { drawQr } from "../../shared/qr-code.ts";

/** A QR code: dark on light in both themes, because scanners need that. */
export function QrCode({ text, label }: { text: string; label: string }) {
  const { size, path } = drawQr(text, "medium");
  return (
    <svg class="qr-code" viewBox={`0 0 ${size} ${size}`} role="img" aria-label={label} shape-rendering="crispEdges">
      <rect width={size} height={size} fill="#fff" />
      <path d={path} fill="#000" />
    </svg>
  );
}
