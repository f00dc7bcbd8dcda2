import { inject } from "vitest";
import * as z from "zod";
import { createApplication } from "../../../src/admin/application/create.ts";
import { Account, CloudflareApiError } from "../../../src/admin/platform/cloudflare.ts";
import { Database } from "../../../src/admin/platform/database.ts";
import { Homes } from "../../../src/admin/platform/homes.ts";
import { restD1 } from "../../../src/admin/platform/rest-d1.ts";
import { createAdminProgram, run } from "../../../src/admin/program.ts";
import { plainHomeSubmitter } from "../../../src/admin/script-command/submit.ts";
import { DeviceClient, ServerClient } from "../../../src/client/index.ts";
import { applicationId, newApplicationId, newApplicationSecret } from "../../../src/shared/identifiers.ts";
import { captured } from "./script.ts";

const credentials = z.object({ applicationId, applicationSecret: z.string() });
const described = z.object({ origin: z.string(), demo: credentials });

/** Asks shared-service.ts. @throws Error with its words */
async function ask(path: string, body: object = {}): Promise<unknown> {
  const response = await fetch(`${inject("sharedService")}${path}`, { method: "POST", body: JSON.stringify(body) });
  if (!response.ok) throw new Error(await response.text());
  return response.json();
}

/** The service's databases as the script sees deployed ones, with their bindings for IDs. */
class SharedAccount extends Account {
  override async call<Shape extends z.ZodType>(result: Shape, { path, body }: Parameters<Account["call"]>[1]) {
    const [, binding = ""] = /^\/d1\/database\/(\w+)\/raw$/.exec(path) ?? [];
    const response = await ask("/d1", { binding, ...body }).catch((error: Error) => {
      throw new CloudflareApiError(path, 400, error.message);
    });
    return result.parse(response);
  }
}

const homeOf = (number: number, binding: string) => ({
  ...{ number, place: null, database: new Database(restD1(new SharedAccount("shared", {}), binding)) },
});

export type Harness = Awaited<ReturnType<typeof startHarness>>;

/** The Worker behind a real HTTP server, which all files share, with an application of the file's own. */
export async function startHarness({ webhookUrl = null }: { webhookUrl?: string | null } = {}) {
  const { origin, demo } = described.parse(await ask("/"));
  const own = { applicationId: newApplicationId(), applicationSecret: newApplicationSecret() };
  const homes = new Homes([homeOf(1, "DB"), homeOf(2, "DB_2")]);
  // As `npm start` runs the cron trigger when the script has a command for the service.
  const wake = async () => void (await ask("/clock"));
  const submit = plainHomeSubmitter({ homes, wake });
  await createApplication(homes, submit, { name: "Test", webhookUrl, credentials: own });
  const opened = {
    ...{ homes, database: homes.first.database, wake },
    ...{ backend: { environment: "test" }, close: () => Promise.resolve() },
  };
  const phone = (udid: string) => new DeviceClient({ baseUrl: origin, applicationId: own.applicationId, udid });
  return {
    /** The demo application, with which /docs tries its calls. */
    demo,
    /** What the Worker writes to in home 1. */
    database: homes.first.database,
    /** `submit` has home 1's scheduler carry out a command. */
    ...{ origin, ...own, homes, submit, phone },
    /** The application's server. */
    server: new ServerClient({ baseUrl: origin, ...own }),
    /** Issues a badge to a phone whose udid is the user's ID. @returns its number */
    issue: async (userId: string) => (await phone(userId).requestBadge({ userId })).badgeId,
    /** Runs the administration script on the same homes, in this process. */
    admin: (...words: string[]) =>
      captured(() =>
        run(
          createAdminProgram(async () => opened),
          words,
        ),
      ),
  };
}
