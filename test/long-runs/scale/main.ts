import { Command, InvalidArgumentError } from "commander";
import { measureBytes } from "./bytes.ts";
import { DEFAULTS } from "./load.ts";
import { report } from "./report.ts";

function number(text: string): number {
  const value = Number(text);
  if (text.trim() === "" || !Number.isFinite(value) || value < 0) throw new InvalidArgumentError("Not a number.");
  return value;
}

function count(text: string): number {
  const value = number(text);
  if (!Number.isSafeInteger(value) || value < 1) throw new InvalidArgumentError("Not a whole number from 1 on.");
  return value;
}

const options = new Command("npm run scale --")
  .description(
    "What the service costs, which limit of the platform it meets first, and what holds more (docs/scale.md).",
  )
  .option("--devices <n>", "devices of all applications", count, DEFAULTS.devices)
  .option("--applications <n>", "applications", count, DEFAULTS.applications)
  .option("--skew <n>", "Zipf exponent: 0 makes all applications equal", number, DEFAULTS.skew)
  .option("--new-share <n>", "share of the devices that get a new badge in a usual month", number, DEFAULTS.newShare)
  .option("--logins-per-day <n>", "logins of a device on a working day", number, DEFAULTS.loginsPerDay)
  .option("--signatures-per-day <n>", "signatures of a device on a working day", number, DEFAULTS.signaturesPerDay)
  .option("--invitations-per-month <n>", "invitations for each device in a month", number, DEFAULTS.invitationsPerMonth)
  .option("--peak-share <n>", "share of a day's requests in its busiest hour", number, DEFAULTS.peakShare)
  .option("--burst <n>", "busiest second of that hour, as a multiple of its average", number, DEFAULTS.burst)
  .option("--measure <rows>", "only measure the bytes of a row, on as many rows in a local SQLite", count)
  .parse()
  .opts<typeof DEFAULTS & { measure?: number }>();

const { measure, ...parameters } = options;
process.stdout.write(measure === undefined ? `${report(parameters)}\n` : `${JSON.stringify(measureBytes(measure))}\n`);
