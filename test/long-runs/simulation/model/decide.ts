/** A row of any of the kinds that the model has; `place` is a unique place, of a device's current badge. */
export interface Row {
  key: string;
  kind: "badge" | "invitation" | "freed" | "block" | "change";
  device: string | null;
  user: string | null;
  state: string | null;
  number: number | null;
  list: number | null;
  cause: string | null;
  place: string | null;
}

export interface Counters {
  /** Numbers that were ever handed out: those from 1 to this. */
  fresh: number;
  /** The last list position. */
  list: number;
  /** The last change number. */
  change: number;
}

export interface Command {
  /** The same in every repetition. */
  id: string;
  /** One call of a client, or the object itself. */
  call: string;
  kind:
    | "issue"
    | "login"
    | "suspend"
    | "resume"
    | "revoke"
    | "invite"
    | "claim"
    | "withdraw"
    | "block"
    | "unblock"
    | "chunk"
    | "fault";
  device: string;
  user: string;
  /** A badge's number, or the ID of the command that made an invitation. */
  subject: string;
  /** When its Worker responds 503, in milliseconds. */
  deadline: number;
  /** Whether its device seems to have no badge, so that nothing need be read. */
  isNew: boolean;
}

export interface Result {
  value: string;
  /** Change numbers with what changed: what this answer says. */
  facts: { change: number; content: string }[];
  /** Whose number it names. */
  owner: { number: number; of: string } | null;
  /** The last change number when it was decided. */
  base: number;
}

/** The rows as a group sees them: those of D1, with what the commands before it did. */
export class View {
  readonly counters: Counters;
  readonly before: ReadonlyMap<string, Row>;
  readonly #rows: Map<string, Row>;

  constructor(counters: Counters, rows: readonly Row[]) {
    this.counters = { ...counters };
    this.before = new Map(rows.map((row) => [row.key, row]));
    this.#rows = new Map(this.before);
  }

  get(key: string): Row | undefined {
    return this.#rows.get(key);
  }

  all(kind: Row["kind"]): Row[] {
    return [...this.#rows.values()].filter((row) => row.kind === kind);
  }

  put(row: Partial<Row> & Pick<Row, "key" | "kind">): void {
    const empty = { device: null, user: null, state: null, number: null, list: null, cause: null, place: null };
    this.#rows.set(row.key, { ...empty, ...this.#rows.get(row.key), ...row });
  }

  delete(key: string): void {
    this.#rows.delete(key);
  }

  /** What differs: null stands for a row that is none any more. */
  diff(): { key: string; before: Row | null; after: Row | null }[] {
    const keys = new Set([...this.before.keys(), ...this.#rows.keys()]);
    return [...keys].flatMap((key) => {
      const [before, after] = [this.before.get(key) ?? null, this.#rows.get(key) ?? null];
      return before === after ? [] : [{ key, before, after }];
    });
  }
}

/** Badges that one chunk of a block revokes at most: as many chunks as can be. */
const CHUNK_BADGES = 1;

export interface Settings {
  /** Numbers that there are. */
  size: number;
  random(below: number): number;
  unblockFinishes: boolean;
  /** A block that the object remembers; without the rule, its chunks are decided by this. */
  remembered?: Row | undefined;
}

/** Decides one command. @returns null when it has to wait for the end of a block */
export function decide(view: View, command: Command, settings: Settings): Result | null {
  const { counters } = view;
  const facts: Result["facts"] = [];
  const note = (what: string) => {
    const change = ++counters.change;
    const content = `${command.call}: ${what}`;
    view.put({ key: `change ${change}`, kind: "change", number: change, state: content, cause: command.id });
    facts.push({ change, content });
  };
  const answer = (value: string, owner: Result["owner"] = null): Result => ({
    value,
    facts,
    owner,
    base: counters.change,
  });
  const badgeOf = (device: string, user: string) =>
    view.all("badge").find((badge) => badge.device === device && badge.user === user && badge.state !== "revoked");
  const take = (): number | null => {
    if (counters.fresh < settings.size) return ++counters.fresh;
    const freed = view.all("freed");
    const chosen = freed[settings.random(freed.length)];
    if (!chosen) return null;
    view.delete(chosen.key);
    return chosen.number;
  };
  const makeCurrent = (key: string, device: string) => {
    for (const other of view.all("badge")) if (other.place === `current ${device}`) view.put({ ...other, place: null });
    view.put({ key, kind: "badge", place: `current ${device}` });
  };
  const { device, user, subject } = command;
  const own = () => ({ number: 0, of: `${device}/${user}` });
  const addBadge = (number: number) => {
    view.put({ key: `badge ${number}`, kind: "badge", device, user, state: "active", number, list: ++counters.list });
    makeCurrent(`badge ${number}`, device);
    note(`badge ${number} active ${device}/${user}`);
    return answer(`badge ${number}`, { ...own(), number });
  };
  const block = view.get(`block ${user}`);
  const chunk = (block: Row) => {
    const due = view
      .all("badge")
      .filter((badge) => badge.user === user && badge.state !== "revoked" && (badge.list ?? 0) <= (block.list ?? 0));
    for (const badge of due.slice(0, CHUNK_BADGES)) {
      view.put({ key: badge.key, kind: "badge", state: "revoked", place: null });
      note(`${badge.key} revoked by ${block.cause}`);
    }
    if (due.length <= CHUNK_BADGES) view.put({ ...block, state: "done" });
  };
  switch (command.kind) {
    case "fault":
      view.put({ key: `badge ${command.id}`, kind: "badge", state: "refused by D1" });
      return answer("D1 took it");
    case "issue":
    case "login": {
      const badge = badgeOf(device, user);
      if (badge) {
        if (badge.place === null) {
          makeCurrent(badge.key, device);
          note(`${badge.key} current`);
        }
        return answer(badge.key, { ...own(), number: badge.number ?? 0 });
      }
      if (command.kind === "login") return answer("none");
      if (block) return answer("blocked");
      const number = take();
      return number === null ? answer("exhausted") : addBadge(number);
    }
    case "suspend":
    case "resume":
    case "revoke": {
      const badge = view.get(`badge ${subject}`);
      const state = command.kind === "suspend" ? "suspended" : command.kind === "resume" ? "active" : "revoked";
      if (!badge || badge.state === "revoked" || badge.state === state) return answer(badge?.state ?? "unknown");
      view.put({ key: badge.key, kind: "badge", state, ...(state === "revoked" ? { place: null } : {}) });
      note(`${badge.key} ${state}`);
      return answer(state);
    }
    case "invite": {
      // The object lost its results: the row tells.
      const made = view.get(`invitation ${command.id}`);
      if (made) return answer(`invited ${made.number}`);
      const number = take();
      if (number === null) return answer("exhausted");
      view.put({ key: `invitation ${command.id}`, kind: "invitation", state: "pending", number });
      note(`invitation ${command.id} pending ${number}`);
      return answer(`invited ${number}`);
    }
    case "claim": {
      const invitation = view.get(`invitation ${subject}`);
      if (invitation?.state !== "pending" || block || badgeOf(device, user)) return answer("not claimed");
      view.put({ key: invitation.key, kind: "invitation", state: "claimed" });
      return addBadge(invitation.number ?? 0);
    }
    case "withdraw": {
      const invitation = view.get(`invitation ${subject}`);
      if (invitation?.state !== "pending") return answer("not withdrawn");
      view.put({ key: invitation.key, kind: "invitation", state: "revoked" });
      view.put({ key: `freed ${invitation.number}`, kind: "freed", number: invitation.number });
      note(`${invitation.key} revoked`);
      return answer("withdrawn");
    }
    case "block": {
      const hasBegun = view
        .all("change")
        .some(({ cause, state }) => cause === command.id && state?.endsWith(`: blocked ${user}`));
      if (!hasBegun) {
        if (block?.state === "revoking") return null;
        if (block) return answer("blocked already");
        view.put({
          key: `block ${user}`,
          kind: "block",
          user,
          state: "revoking",
          list: counters.list,
          cause: command.id,
        });
        note(`blocked ${user}`);
        const begun = view.get(`block ${user}`);
        if (begun) chunk(begun);
      }
      const now = view.get(`block ${user}`);
      if (now?.cause === command.id && now.state === "revoking") return null;
      const mine = view
        .all("change")
        .filter(({ cause, state }) => cause === command.id || state?.endsWith(` by ${command.id}`));
      const said = mine.map(({ number, state }) => ({ change: number ?? 0, content: state ?? "" }));
      return { ...answer(`revoked ${said.length - 1}`), facts: said };
    }
    case "chunk": {
      const due = settings.remembered ?? block;
      if (due?.state === "revoking") chunk(due);
      return answer("");
    }
    case "unblock": {
      if (block?.state === "revoking" && settings.unblockFinishes) return null;
      if (!block) return answer("not blocked");
      view.delete(block.key);
      note(`unblocked ${user}`);
      return answer("unblocked");
    }
  }
}
