import { randomBytes } from "node:crypto";
import { DeviceClient, ServerClient } from "../../client/index.ts";
import { createApplication, type DemoApplication } from "./administrator.ts";
import type { Narrator } from "./narrator.ts";
import type { WebhookReceiver } from "./webhook-receiver.ts";

/** Who takes part in the story. */
export interface Cast {
  narrator: Narrator;
  origin: string;
  application: DemoApplication;
  receiver: WebhookReceiver;
  server: ServerClient;
  /** A client for the device of that name, whose udid is new. */
  device(name: string): DeviceClient;
}

/** Has the administrator create an application, and gives everybody a client. @throws DemoFailure */
export async function assemble(narrator: Narrator, origin: string, receiver: WebhookReceiver): Promise<Cast> {
  const application = await narrator.step(
    "An administrator creates an application",
    "The app gets the ID, only the server the secret. Four numbers will do.",
    async () => createApplication(narrator, await receiver.listen()),
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
    device: (name) => new DeviceClient({ ...common, udid: `${name}-${randomBytes(8).toString("hex")}` }),
  };
}
