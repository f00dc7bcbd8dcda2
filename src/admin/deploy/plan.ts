import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import * as z from "zod";
import type { Target } from "../platform/target.ts";
import { runWrangler } from "../platform/wrangler.ts";
import type { Deployment } from "./deployment.ts";
import type { Step } from "./steps.ts";

/**
 * A Worker of this name that does nothing yet, with the limit of CPU that wrangler.toml has. wrangler makes one anyway, without
 * that limit, for the first secret. It is the first thing that is written: the platform refuses it on the Free plan (code
 * 100328), and nothing else tells the plan to a token that may not read bills.
 */
export function planStep(deployment: Deployment): Step {
  return {
    name: "Plan of the account (Workers Paid)",
    async inspect() {
      const { worker } = deployment.target;
      const isThere = await deployment.find(z.unknown(), `/workers/services/${worker}`);
      if (isThere !== null) return null;
      return { action: `make a draft of the Worker ${worker}`, make: () => uploadDraft(deployment.target) };
    },
  };
}

/** By wrangler, so that the next upload finds a Worker that wrangler has made, and does not warn about it. */
async function uploadDraft({ worker, accountId, compatibilityDate, cpuMilliseconds }: Target): Promise<void> {
  const folder = mkdtempSync(join(tmpdir(), "badge-draft-"));
  try {
    writeFileSync(
      join(folder, "draft.js"),
      "export default { fetch() { return new Response(null, { status: 503 }); } };\n",
    );
    const config = {
      name: worker,
      main: "draft.js",
      compatibility_date: compatibilityDate,
      ...(accountId !== undefined && { account_id: accountId }),
      // Nobody has to reach it.
      workers_dev: false,
      preview_urls: false,
      ...(cpuMilliseconds !== undefined && { limits: { cpu_ms: cpuMilliseconds } }),
    };
    const path = join(folder, "wrangler.json");
    writeFileSync(path, JSON.stringify(config));
    await runWrangler(["deploy", "--config", path]);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}
