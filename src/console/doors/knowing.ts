import type { ConnectedDoor, ServerClient } from "../../client/index.ts";

/** The service holds a door's call for 50 seconds: whoever has not called for longer is not connected (contract section 26). */
const CONNECTED_MILLISECONDS = 60_000;

const PER_PAGE = 1000;

export const isConnected = ({ seenAt }: ConnectedDoor, now = Date.now()): boolean =>
  seenAt !== undefined && now - Date.parse(seenAt) <= CONNECTED_MILLISECONDS;

/** All doors that have a secret. */
export async function allDoors(server: ServerClient, signal: AbortSignal): Promise<ConnectedDoor[]> {
  const doors: ConnectedDoor[] = [];
  for await (const page of server.listDoors({ perPage: PER_PAGE, signal })) doors.push(...page.doors);
  return doors;
}
