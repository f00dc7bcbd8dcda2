import type { ConnectedDoor, ServerClient } from "../../client/index.ts";
import { useLoaded } from "../parts/hooks.ts";
import { useSettings } from "../parts/settings.ts";

/** The service holds a door's call for 50 seconds, so a door calls about once a minute (contract section 26). */
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

/** How many doors have a secret, and how many of them are connected. */
export interface DoorCounts {
  all: number;
  connected: number;
}

/** Null if unknown, or if the application has no status lists. */
export function useDoorCounts(): DoorCounts | null {
  const { statusList } = useSettings();
  const counts = useLoaded(async (server, signal): Promise<DoorCounts | null> => {
    if (!statusList) return null;
    const doors = await allDoors(server, signal);
    return { all: doors.length, connected: doors.filter((door) => isConnected(door)).length };
  });
  return counts.value;
}
