import { Command } from "commander";
import { positiveNumber, say } from "../command-line.ts";
import { measureBytes } from "./bytes.ts";
import { PARAMETERS, type Parameters } from "./model.ts";
import { report } from "./report.ts";

const command = new Command("npm run scale --")
  .description("Costs of the service, and its first bottleneck (docs/scale.md).")
  .option("--measure <rows>", "only measure the bytes of a row, on as many rows in a local SQLite", positiveNumber);
for (const [name, [value, description]] of Object.entries(PARAMETERS)) {
  const flag = name.replaceAll(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`);
  // A skew of 0 makes all applications equal.
  command.option(`--${flag} <n>`, description, name === "skew" ? Number : positiveNumber, value);
}

const { measure, ...parameters } = command.parse().opts<Parameters & { measure?: number }>();
say(measure === undefined ? report(parameters) : JSON.stringify(measureBytes(measure)));
