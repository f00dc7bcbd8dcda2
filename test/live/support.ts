import { runInDurableObject } from "cloudflare:test";
import { env } from "cloudflare:workers";
import { drizzle } from "drizzle-orm/d1";
import { decodeJwt } from "jose";
import { expect } from "vitest";
import { z } from "zod";
import { makeConsoleSecret } from "../../src/shared/credentials.ts";
import { doorSecret } from "../../src/shared/schema.ts";
import type { Live } from "../../src/worker/live/live.ts";
import { claimsOf, getList, holder } from "../badges/status-support.ts";
import { createApplication, type TestApplication } from "../support/application.ts";
import { homeDatabase } from "../support/home.ts";
import { callText } from "../support/http.ts";

export const withLists = () => createApplication({ statusList: true });

/** A door gets a secret. @returns what it sends */
export async function addDoor(application: TestApplication, name: string): Promise<Record<string, string>> {
  const { row, secret } = await makeConsoleSecret();
  const values = { ...row, name, applicationId: application.id, createdAt: Date.now() };
  await drizzle(homeDatabase()).insert(doorSecret).values(values);
  return { applicationid: application.id, applicationsecret: secret };
}

type LiveAnswer = Awaited<ReturnType<typeof callText>>;

/** A door's call. @param query without its question mark */
export const listen = (headers: Record<string, string>, query = ""): Promise<LiveAnswer> =>
  callText(`/v1/live${query && `?${query}`}`, { headers });

const deltaClaims = z.strictObject({
  sub: z.string(),
  iat: z.int(),
  since: z.int(),
  change: z.int(),
  entries: z.array(z.tuple([z.int(), z.int(), z.int()])),
});

/** The claims of a delta, exactly those of the contract. */
export function deltaOf({ status, text }: LiveAnswer): z.infer<typeof deltaClaims> {
  expect(`${status} ${text}`).toMatch(/^200 /);
  return deltaClaims.parse(decodeJwt(text));
}

export const outcomeOf = ({ status, text }: LiveAnswer): string => {
  const { error } = z.object({ error: z.string() }).parse(JSON.parse(text));
  return `${status} ${error}`;
};

export const liveOf = ({ id }: { id: string }): DurableObjectStub<Live> => env.LIVE.getByName(id);

/** How many calls the object holds. */
export const heldCalls = (application: { id: string }): Promise<number> =>
  runInDurableObject(liveOf(application), (_, state) => {
    return state.getWebSockets().filter(({ readyState }) => readyState === WebSocket.OPEN).length;
  });

/** Until the object holds so many calls. Where they are many, each look takes a while. */
export async function untilHeld(application: { id: string }, calls: number): Promise<void> {
  while ((await heldCalls(application)) !== calls) await scheduler.wait(calls < 100 ? 5 : 100);
}

/** The last change that the application's lists have. */
export const changeOf = async (application: { id: string }): Promise<number> =>
  claimsOf((await getList(application)).text).change;

/** An application with lists and a badge, the badge's index in list 0, and the last change that the lists have. */
export async function withBadge() {
  const application = await withLists();
  const badge = await holder(application, "phone");
  return { application, ...badge, have: await changeOf(application) };
}

/** The same, and the call of a door, which is held. */
export async function withHeldDoor() {
  const scene = await withBadge();
  const door = await addDoor(scene.application, "North");
  const held = listen(door, `have=${scene.have}`);
  await untilHeld(scene.application, 1);
  return { ...scene, door, held };
}

/** What the object's alarm does, whenever it is set for. */
export const ringLive = (application: { id: string }): Promise<void> =>
  runInDurableObject(liveOf(application), (live) => live.alarm());

/** The object ends; its storage stays. */
export const endLive = (application: { id: string }): Promise<void> =>
  runInDurableObject(liveOf(application), (_, state) => state.abort("the object ends")).catch(() => {});
