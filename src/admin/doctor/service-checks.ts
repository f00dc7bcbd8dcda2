import { and, eq, isNull } from "drizzle-orm";
import { parseLogSample } from "../../shared/log-sample.ts";
import { application } from "../../shared/schema.ts";
import { parsePublicUrl } from "../../shared/service-url.ts";
import { counted } from "../command-line/output.ts";
import type { Session } from "../command-line/session.ts";
import { DEPLOY } from "../command-line/shell.ts";
import { healthProblem } from "../deploy/address.ts";
import type { Deployment } from "../deploy/deployment.ts";
import { readReplication } from "../deploy/replication.ts";
import { missingConsumers } from "../deploy/upload.ts";
import type { LocalState } from "../platform/paths.ts";
import { readLocalKeys } from "../platform/sealing-key-file.ts";
import { workerSecrets } from "../platform/worker-secrets.ts";
import { formatWranglerCommand } from "../platform/wrangler.ts";
import { missingSecrets } from "../sealing-key/deployed.ts";
import { newestVersion } from "../sealing-key/newest.ts";
import { type Check, failure, ok, warning } from "./checks.ts";

const TIMEOUT_MILLISECONDS = 10_000;

/** Checks of the running service. @param addresses its addresses, the preferred one first */
export function serviceChecks(
  session: Session,
  addresses: () => Promise<readonly [string, ...string[]]>,
  publicUrl: string,
): Check[] {
  const { backend } = session;
  const isLocal = "local" in backend;
  return [
    {
      name: "Health",
      async run() {
        const checked = await Promise.all(
          (await addresses()).map(async (at) => ({ at: `${at}/health`, problem: await healthProblem(at) })),
        );
        const failed = checked.filter(({ problem }) => problem !== null);
        if (failed.length === 0) return ok(checked.map(({ at }) => at).join(", "));
        return failure(
          failed.map(({ at, problem }) => `${at}: ${problem}`).join("; "),
          "local" in backend
            ? "Start the service: npm start. If it runs at another address, add --address."
            : `503: D1 does not respond, see https://www.cloudflarestatus.com. No response: see ${formatWranglerCommand(["tail", "--env", backend.environment])}. Another address: add --address.`,
        );
      },
    },
    { name: "PUBLIC_URL", run: () => checkPublicUrl(session, publicUrl) },
    {
      name: "Status lists",
      run: () => checkStatusLists(session, async () => (isLocal ? (await addresses())[0] : publicUrl)),
    },
  ];
}

async function applicationsWithLists({ homes }: Session): Promise<string[]> {
  const hasList = and(eq(application.statusList, true), isNull(application.disabledAt));
  const found = await homes.map(({ database }) =>
    database.run((orm) => orm.select({ id: application.id }).from(application).where(hasList)),
  );
  return found.flat().map(({ id }) => id);
}

async function checkPublicUrl(session: Session, publicUrl: string) {
  const isLocal = "local" in session.backend;
  const url = parsePublicUrl(publicUrl);
  if (url !== null && (isLocal || url.startsWith("https://"))) return ok(url);
  const needed = (await applicationsWithLists(session)).length;
  if (needed > 0) {
    return failure(
      `${counted(needed, "application")} with status lists, but it is ${publicUrl === "" ? "not set" : "not an https URL"}`,
      `Set it in wrangler.toml to what it was, and run ${DEPLOY}.`,
    );
  }
  if (publicUrl === "") return ok("not set: no application has status lists");
  return warning(
    `${publicUrl} is not an https URL`,
    "Correct it in wrangler.toml before an application has status lists.",
  );
}

async function checkStatusLists(session: Session, origin: () => Promise<string>) {
  const ids = await applicationsWithLists(session);
  if (ids.length === 0) return ok("no application has any");
  const base = (await origin()).replace(/\/$/, "");
  const failed: string[] = [];
  for (const id of ids) {
    const url = `${base}/v1/applications/${id}/status/0`;
    const status = await fetch(url, { signal: AbortSignal.timeout(TIMEOUT_MILLISECONDS) }).then(
      async (response) => {
        await response.body?.cancel();
        return `responds ${response.status}`;
      },
      () => "does not respond",
    );
    if (status !== "responds 200") failed.push(`${url} ${status}`);
  }
  if (failed.length === 0) return ok(`${ids.length} published`);
  return failure(
    failed.join("; "),
    "Doors use the list that they have until it is too old: see the log lines signed-without-status, and /health.",
  );
}

/** @param text the value in wrangler.toml, if it has one */
export const logSampleCheck = (text = "1"): Check => ({
  name: "LOG_SAMPLE",
  async run() {
    const sample = parseLogSample(text);
    if (sample !== null) return ok(sample === 1 ? "every line" : `one line in ${sample} of successful requests`);
    return warning(
      `${text} is not a whole number from 1 on, so every line is written`,
      `Correct it, and run ${DEPLOY}.`,
    );
  },
});

/** @param state where the private halves of local keys are */
export const localKeyCheck = ({ homes }: Session, state: LocalState): Check => ({
  name: "Private half of the sealing key",
  async run() {
    const newest = await newestVersion(homes);
    if (readLocalKeys(state).has(newest)) return ok("in the key file");
    return failure(`the key file has no version ${newest}`, "Restore your copy, or start over: npm run reset.");
  },
});

/** Checks that need the platform's API. */
export const platformChecks = ({ homes, output }: Session, deployment: Deployment): Check[] => [
  {
    name: "Private half of the sealing key",
    async run() {
      const { environment } = deployment;
      const { newest, older } = await missingSecrets(homes, workerSecrets(environment, output.note));
      const missing = newest === null ? older : [...older, newest];
      const [first] = missing;
      if (first === undefined) return ok("is a Worker secret");
      return failure(
        `the Worker has no secret ${missing.join(", ")}`,
        `Restore it, if you have a copy: npx wrangler secret put ${first} --env ${environment}. Without it, an application whose values need it can serve no device again: create new applications.`,
      );
    },
  },
  {
    name: "Read replication",
    async run() {
      const modes = await homes.map(({ number }) => readReplication(deployment, number));
      const shown = homes.all.map(({ number }, index) => `home ${number} ${modes[index] ?? "unknown"}`).join(", ");
      return ok(modes.every((mode) => mode === "auto") ? shown : `${shown}: all reads go to the primary`);
    },
  },
  {
    name: "Queues",
    async run() {
      const missing = await missingConsumers(deployment);
      if (missing.length > 0) return failure(`nothing consumes ${missing.join(", ")}`, `Run ${DEPLOY}.`);
      return ok(deployment.target.consumers.map(({ queue }) => queue).join(", "));
    },
  },
];
