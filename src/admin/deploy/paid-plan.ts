import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import * as z from "zod";
import type { Target } from "../platform/target.ts";
import { runWrangler } from "../platform/wrangler.ts";
import type { Deployment } from "./deployment.ts";
import type { Step } from "./steps.ts";

/**
 * Uploads a Worker of this name that does nothing yet, with the CPU limit of wrangler.toml. It is the first write, because the
 * platform refuses that limit on the Free plan (code 100328), and a token without rights to billing has no other way to learn
 * the plan. For the first secret, wrangler would create such a Worker anyway, without the limit.
 */
export function planStep(deployment: Deployment): Step {
  return {
    name: "Plan of the account (Workers Paid)",
    async inspect() {
      const { worker } = deployment.target;
      const existing = await deployment.find(z.unknown(), `/workers/services/${worker}`);
      if (existing !== null) return null;
      return { action: `create a draft of the Worker ${worker}`, make: () => uploadDraft(deployment.target) };
    },
  };
}

/** Uploads it with wrangler, which would otherwise warn at the next upload that it did not create the Worker. */
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
      // Nobody needs to reach it.
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
