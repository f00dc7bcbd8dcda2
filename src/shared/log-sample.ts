/**
 * The variable `LOG_SAMPLE` of wrangler.toml: the service logs 1 in N successful requests.
 *
 * @returns null if it is missing or not a whole number from 1 on; all requests are logged then
 */
export function parseLogSample(text: string | undefined): number | null {
  const sample = Number(text);
  return Number.isInteger(sample) && sample >= 1 ? sample : null;
}
