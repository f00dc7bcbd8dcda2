import { env } from "cloudflare:workers";
import { beforeEach, describe, expect, it, vi } from "vitest";
import { createContext } from "../../src/worker/context.ts";
import { boundHome } from "../support/home.ts";
import { Outbox } from "../support/outbox.ts";
import { answer } from "../support/receivers.ts";

beforeEach(() => {
  vi.spyOn(console, "log").mockImplementation(() => {});
});

/** Delivers one event to a URL, as the Worker does whose variable ENVIRONMENT has this value. */
async function deliver(webhookUrl: string, environment: Env["ENVIRONMENT"]) {
  const fetched = vi.spyOn(globalThis, "fetch").mockImplementation(async () => answer(204));
  const outbox = await Outbox.open({ webhookUrl });
  const { isLocal } = createContext({ ...env, ENVIRONMENT: environment }, () => {}, boundHome());
  outbox.context = { ...outbox.context, isLocal };
  const event = await outbox.issue();
  await outbox.deliver(event);
  const { state, lastOutcome } = await outbox.event(event);
  return { requests: fetched.mock.calls.length, state, lastOutcome };
}

describe("a webhook URL on the machine itself (contract section 8)", () => {
  it.each(["http://localhost:8080/hook", "http://127.0.0.1:8080/hook"])(
    "%s gets webhooks from a local service and no request from a deployed one",
    async (url) => {
      expect(await deliver(url, "local")).toEqual({ requests: 1, state: "delivered", lastOutcome: "answered" });
      vi.restoreAllMocks();
      vi.spyOn(console, "log").mockImplementation(() => {});
      const deployed = await deliver(url, "production");
      expect(deployed).toMatchObject({ requests: 0, state: "pending" });
      expect(deployed.lastOutcome).toMatch(/^refused:/);
    },
  );
});
