import * as z from "zod";
import type { doorPage } from "../../shared/application-responses.ts";
import type { ApplicationId } from "../../shared/identifiers.ts";
import { isoTime } from "../../shared/time.ts";
import type { Context } from "../context.ts";
import { cursorCodec } from "../cursor.ts";
import { listDoors } from "../storage/door-secrets.ts";

/** Cursors have a page's last name. */
export const DOOR_CURSOR = cursorCodec("doors", z.string());

type DoorView = z.infer<typeof doorPage>["doors"][number];

/** @returns a page of the doors that have a secret, and the name after which the next page starts */
export async function pageDoors(
  { db, live }: Pick<Context, "db" | "live">,
  applicationId: ApplicationId,
  page: { after: string | null; perPage: number },
): Promise<{ doors: DoorView[]; next: string | null }> {
  const { items, last } = await listDoors(db, applicationId, page);
  const seen =
    items.length === 0
      ? []
      : await live.seen(
          applicationId,
          items.map(({ id }) => id),
        );
  const seenById = new Map(seen.map((door) => [door.id, door]));
  const doors = items.map(({ id, name, createdAt }): DoorView => {
    const shown = { name, createdAt: isoTime(createdAt) };
    const door = seenById.get(id);
    if (!door) return { ...shown, isCurrent: false };
    return { ...shown, seenAt: isoTime(door.seenAt), change: door.have, isCurrent: door.isCurrent };
  });
  return { doors, next: last?.name ?? null };
}
