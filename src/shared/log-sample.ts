/**
 * The variable `LOG_SAMPLE` of wrangler.toml: one line of so many successful requests is written.
 *
 * @returns null when it is missing or no whole number from 1 on: then every line is written
 */
export function parseLogSample(text: string | undefined): number | null {
  const sample = Number(text);
  return Number.isInteger(sample) && sample >= 1 ? sample : null;
}
