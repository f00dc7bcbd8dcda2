import { spawn } from "node:child_process";
import { randomBytes } from "node:crypto";
import { text } from "node:stream/consumers";
import * as z from "zod";
import { oneLine } from "../../admin/command-line/errors.ts";
import { ADMIN } from "../../admin/command-line/shell.ts";
import { PROJECT } from "../../admin/platform/paths.ts";
import { DeviceClient, type DeviceClientOptions, ServerClient } from "../../client/index.ts";
import { Door } from "./door.ts";
import { DemoFailure, type Narrator } from "./narrator.ts";
import { shownJson } from "./text.ts";
import type { WebhookReceiver } from "./webhook-receiver.ts";

/** Everybody in the story. */
export interface Cast {
  narrator: Narrator;
  origin: string;
  application: DemoApplication;
  receiver: WebhookReceiver;
  server: ServerClient;
  door: Door;
  device(name: string): DeviceClient;
}

/** Creates an application as the administrator, and a client for everybody. @throws DemoFailure */
export async function assemble(narrator: Narrator, origin: string, receiver: WebhookReceiver): Promise<Cast> {
  const application = await narrator.step(
    "An administrator creates an application",
    "The app gets the ID; only the server gets the secret. Five numbers are enough.",
    async () => createApplication(narrator, "Demo story", ["--webhook-url", await receiver.listen(), "--status-list"]),
  );
  const { applicationId, applicationSecret } = application;
  receiver.trust(applicationSecret);
  const common = { baseUrl: origin, applicationId, fetch: narrator.fetch };
  return {
    narrator,
    origin,
    application,
    receiver,
    server: new ServerClient({ ...common, applicationSecret }),
    door: new Door(narrator, origin, applicationId),
    device: (name) => newDevice(common, name),
  };
}

/** A client for a new device: its udid is random and starts with this name. */
export const newDevice = (of: Omit<DeviceClientOptions, "udid">, name: string) =>
  new DeviceClient({ ...of, udid: `${name}-${randomBytes(8).toString("hex")}` });

/**
 * The numbers that the story needs: for two users of a phone, one of them again as a visitor, a visitor who comes, and one
 * who does not.
 */
const DEMO_RANGE_SIZE = 5;
/** Far above the ranges that applications get by default. */
const FIRST_DEMO_NUMBER = 8_000_000_000_000_000;
const MAX_RANGE_TRIES = 5;

const created = z.object({
  applicationId: z.string(),
  applicationSecret: z.string(),
  firstNumber: z.number(),
  lastNumber: z.number(),
});

type DemoApplication = z.infer<typeof created>;

/**
 * Creates an application with the administration script. Its range depends on the current millisecond; if it is taken, the
 * next try has another.
 */
export async function createApplication(
  narrator: Narrator,
  name: string,
  options: readonly string[],
): Promise<DemoApplication> {
  for (let tries = 1; ; tries++) {
    const first = FIRST_DEMO_NUMBER + Date.now() * DEMO_RANGE_SIZE;
    const range = ["--first", String(first), "--last", String(first + DEMO_RANGE_SIZE - 1)];
    const words = ["application", "create", "--name", name, ...options, ...range, "--json"];
    narrator.command([...ADMIN.split(" "), ...words]);
    const { code, stdout, stderr } = await runAdmin(words);
    if (code === 0) {
      narrator.received(shownJson(stdout.trim()));
      return created.parse(JSON.parse(stdout));
    }
    narrator.received(oneLine(stderr));
    const isTaken = stderr.includes("overlap");
    if (!isTaken || tries >= MAX_RANGE_TRIES) throw new DemoFailure(oneLine(stderr) || `the script ended with ${code}`);
  }
}

async function runAdmin(words: readonly string[]): Promise<{ code: number | null; stdout: string; stderr: string }> {
  const child = spawn("npm", ["run", "-s", "admin", "--", ...words], {
    cwd: PROJECT,
    stdio: ["ignore", "pipe", "pipe"],
  });
  const ended = new Promise<number | null>((resolve, reject) => child.once("error", reject).once("close", resolve));
  const [code, stdout, stderr] = await Promise.all([ended, text(child.stdout), text(child.stderr)]);
  return { code, stdout, stderr };
}
