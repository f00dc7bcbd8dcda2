import encodeQr from "qr";

/** Modules of light margin that ISO/IEC 18004 demands around a code. */
const QUIET_ZONE = 4;

/** A QR code whose content is the text alone: dark on light in both themes, because scanners need that. */
export function QrCode({ text, label }: { text: string; label: string }) {
  const rows = encodeQr(text, "raw", { ecc: "medium", border: QUIET_ZONE });
  const size = rows.length;
  const path = rows.flatMap((row, y) => row.map((isDark, x) => (isDark ? `M${x} ${y}h1v1h-1z` : ""))).join("");
  return (
    <svg class="qr-code" viewBox={`0 0 ${size} ${size}`} role="img" aria-label={label} shape-rendering="crispEdges">
      <rect width={size} height={size} fill="#fff" />
      <path d={path} fill="#000" />
    </svg>
  );
}
