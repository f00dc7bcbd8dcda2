/**
 * Puts pieces into as few bins as first-fit decreasing needs. A piece and a bin have several sizes, each as a share of a
 * bin: 1 is all of it.
 *
 * @returns how full each bin is, size by size
 */
export function pack(pieces: readonly (readonly number[])[]): number[][] {
  const bins: number[][] = [];
  for (const piece of [...pieces].sort((one, other) => Math.max(...other) - Math.max(...one))) {
    const bin = bins.find((full) => piece.every((size, place) => (full[place] ?? 0) + size <= 1));
    if (bin) for (const [place, size] of piece.entries()) bin[place] = (bin[place] ?? 0) + size;
    else bins.push([...piece]);
  }
  return bins;
}
