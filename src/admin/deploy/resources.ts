import * as z from "zod";
import { databaseBindingOf, HOME_PLACE, queueBindingOf } from "../../shared/homes.ts";
import { UserError } from "../command-line/errors.ts";
import { withDatabaseId, withTable } from "../platform/wrangler-toml.ts";
import type { Deployment } from "./deployment.ts";
import { jurisdictionOf } from "./place.ts";
import type { Step } from "./steps.ts";

/** Binds a home's database in wrangler.toml, at first without its ID. */
export function databaseBindingStep(deployment: Deployment, number: number): Step {
  const { environment } = deployment;
  return {
    name: `Binding ${databaseBindingOf(number)} in wrangler.toml`,
    async inspect() {
      if (deployment.home(number) !== undefined) return null;
      const entries = {
        binding: databaseBindingOf(number),
        database_name: databaseNameOf(deployment, number),
        migrations_dir: "migrations",
      };
      return {
        action: `bind ${entries.database_name}`,
        make: async () => deployment.edit((text) => withTable(text, environment, "d1_databases", entries)),
      };
    },
  };
}

/** The name that wrangler.toml has, or will have. */
function databaseNameOf(deployment: Deployment, number: number): string {
  const [{ database: first }] = deployment.target.homes;
  return deployment.home(number)?.database.database_name ?? `${first.database_name}-${number}`;
}

/**
 * Binds the queues of a further home in a jurisdiction, because its messages must not leave it either. All other homes share
 * home 1's queue.
 *
 * @param wanted the home's place, if wrangler.toml does not have it yet
 */
export function queueBindingStep(deployment: Deployment, number: number, wanted: string | null): Step {
  const { environment } = deployment;
  const binding = queueBindingOf(number);
  return {
    name: `Queues of home ${number} in wrangler.toml`,
    async inspect() {
      const { producers, consumers } = deployment.target;
      const place = deployment.home(number)?.place ?? wanted;
      if (jurisdictionOf(place) === null || producers.some((each) => each.binding === binding)) return null;
      const shared = producers.find((each) => each.binding === queueBindingOf(1))?.queue;
      const consumer = consumers.find((each) => each.queue === shared);
      const deadConsumer = consumers.find((each) => each.queue === consumer?.dead_letter_queue);
      if (consumer?.dead_letter_queue === undefined || deadConsumer === undefined) {
        throw new UserError(
          `wrangler.toml has no consumers of the queue ${queueBindingOf(1)} and of its dead letters.`,
        );
      }
      const queue = `${consumer.queue}-${number}`;
      const dead = `${consumer.dead_letter_queue}-${number}`;
      const tables: [string, Readonly<Record<string, string | number | undefined>>][] = [
        ["queues.producers", { binding, queue }],
        ["queues.consumers", { ...consumer, queue, dead_letter_queue: dead }],
        ["queues.consumers", { ...deadConsumer, queue: dead }],
      ];
      return {
        action: `bind ${queue}`,
        make: async () =>
          deployment.edit((text) =>
            tables.reduce((edited, [name, entries]) => withTable(edited, environment, name, entries), text),
          ),
      };
    },
  };
}

const database = z.object({ uuid: z.string(), name: z.string(), jurisdiction: z.string().nullish() });

/**
 * Creates a home's database, or finds it in the account, and writes its ID into wrangler.toml.
 *
 * @param wanted the home's place, if wrangler.toml does not have it yet
 */
export function databaseStep(deployment: Deployment, number: number, wanted: string | null): Step {
  return {
    name: `D1 database of home ${number}`,
    async inspect() {
      const home = deployment.home(number);
      const databaseName = databaseNameOf(deployment, number);
      const id = home?.database.database_id;
      const place = wanted ?? home?.place ?? null;
      if (id !== undefined) {
        const bound = await findBound(deployment, databaseName, id);
        // A home made before places were recorded has none to compare with.
        if (place !== null) assertJurisdiction(`The database ${databaseName}`, bound?.jurisdiction, place);
        return null;
      }
      // The platform's filter may match other names too.
      const path = `/d1/database?name=${encodeURIComponent(databaseName)}`;
      const named = (await deployment.find(z.array(database), path)) ?? [];
      const found = named.find(({ name }) => name === databaseName);
      if (found !== undefined) assertJurisdiction(`The database ${databaseName}`, found.jurisdiction, place);
      return {
        action: found ? `use the account's ${databaseName}` : `create ${databaseName}${place ? `, ${place}` : ""}`,
        async make() {
          const { uuid } = found ?? (await create(databaseName, place));
          const { environment } = deployment;
          deployment.edit((text) => withDatabaseId(text, environment, databaseBindingOf(number), uuid));
        },
      };
    },
  };

  function create(name: string, place: string | null): Promise<z.output<typeof database>> {
    const [, kind, where] = HOME_PLACE.exec(place ?? "") ?? [];
    const body = {
      name,
      ...(kind === "location" && { primary_location_hint: where }),
      ...(kind === "jurisdiction" && { jurisdiction: where }),
    };
    return deployment.account.call(database, { method: "POST", path: "/d1/database", body });
  }
}

/** @returns null without an account */
async function findBound(deployment: Deployment, name: string, id: string) {
  const found = await deployment.find(database, `/d1/database/${id}`);
  if (deployment.isOffline || found !== null) return found;
  throw new UserError(
    `The account ${deployment.account.id} has no database ${id} (${name}), which wrangler.toml names: is this the right account? A deleted database comes back only from a copy. To create an empty one, delete the line database_id.`,
  );
}

const queue = z.object({ queue_id: z.string(), queue_name: z.string(), jurisdiction: z.string().nullish() });

/** Creates a queue, in the jurisdiction of the home whose messages it holds. */
export function queueStep(deployment: Deployment, name: string): Step {
  return {
    name: `Queue ${name}`,
    async inspect() {
      const place = deployment.home(homeOfQueue(name))?.place ?? null;
      const named = await deployment.find(z.array(queue), `/queues?name=${encodeURIComponent(name)}`);
      const found = named?.find((each) => each.queue_name === name);
      if (found !== undefined) {
        assertJurisdiction(`The queue ${name}`, found.jurisdiction, place);
        return null;
      }
      const jurisdiction = jurisdictionOf(place);
      return {
        action: `create it${jurisdiction === null ? "" : `, jurisdiction=${jurisdiction}`}`,
        async make() {
          const body = { queue_name: name, ...(jurisdiction !== null && { jurisdiction }) };
          await deployment.account.call(queue, { method: "POST", path: "/queues", body });
        },
      };
    },
  };
}

/** The names of further homes' queues end with the home's number. */
const homeOfQueue = (name: string): number => Number(/-(\d{1,3})$/.exec(name)?.[1] ?? 1);

/** @param actual undefined when the platform does not say */
function assertJurisdiction(what: string, actual: string | null | undefined, place: string | null): void {
  if (actual === undefined || actual === jurisdictionOf(place)) return;
  throw new UserError(
    `${what} exists already, ${actual === null ? "without a jurisdiction" : `in the jurisdiction ${actual}`}, and wrangler.toml wants ${place ?? "no place"}: a place never changes. Delete it if it is empty, or name another one in wrangler.toml.`,
  );
}
