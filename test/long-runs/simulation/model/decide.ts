/** A row of any of the kinds that the model has. */
export interface Row {
  key: string;
  kind: "badge" | "invitation" | "freed" | "block" | "change";
  device: string;
  user: string;
  state: string;
  number: number;
  list: number;
  /** The command that made it. */
  cause: string;
  /** A unique one: of a device's current badge. */
  place: string | null;
}

const EMPTY = { device: "", user: "", state: "", number: 0, list: 0, cause: "", place: null };

export interface Counters {
  /** Numbers that were ever handed out: those from 1 to this. */
  fresh: number;
  /** The last list position. */
  list: number;
  /** The last change number. */
  change: number;
}

/** What clients ask for, `fault` what D1 refuses; a `chunk` of a block is decided by the object itself. */
export type Kind =
  | ("issue" | "login" | "suspend" | "resume" | "revoke" | "invite" | "claim" | "withdraw")
  | ("block" | "unblock" | "chunk" | "fault");

export interface Command {
  /** The same in every repetition. */
  id: string;
  /** One call of a client, or the object itself. */
  call: string;
  kind: Kind;
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
  readonly #before: ReadonlyMap<string, Row>;
  readonly #rows: Map<string, Row>;

  constructor(counters: Counters, rows: readonly Row[]) {
    this.counters = { ...counters };
    this.#before = new Map(rows.map((row) => [row.key, row]));
    this.#rows = new Map(this.#before);
  }

  get(key: string): Row | undefined {
    return this.#rows.get(key);
  }

  all(kind: Row["kind"]): Row[] {
    return [...this.#rows.values()].filter((row) => row.kind === kind);
  }

  put(row: Partial<Row> & Pick<Row, "key" | "kind">): void {
    this.#rows.set(row.key, { ...EMPTY, ...this.#rows.get(row.key), ...row });
  }

  delete(key: string): void {
    this.#rows.delete(key);
  }

  /** What differs: null stands for a row that is none any more. */
  diff(): { before: Row | null; after: Row | null }[] {
    const keys = new Set([...this.#before.keys(), ...this.#rows.keys()]);
    const changes = [...keys].map((key) => ({ before: this.#before.get(key) ?? null, after: this.get(key) ?? null }));
    return changes.filter(({ before, after }) => before !== after);
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
  remembered: Row | undefined;
}

/** Decides one command. @returns null when it has to wait for the end of a block */
export function decide(view: View, command: Command, settings: Settings): Result | null {
  const { counters } = view;
  const { id, call, device, user, subject } = command;
  const noted: Result["facts"] = [];
  const block = () => view.get(`block ${user}`);
  const isTheirs = (row: Row) => row.device === device && row.user === user && row.state !== "revoked";
  const badge = view.all("badge").find(isTheirs);
  const known = view.get(`invitation ${subject}`);
  const invitation = known?.state === "pending" ? known : null;

  const answer = (value: string, owner: Result["owner"] = null, facts = noted): Result => {
    return { value, facts, owner, base: counters.change };
  };
  const answerBadge = ({ key, number }: Pick<Row, "key" | "number">) =>
    answer(key, { number, of: `${device}/${user}` });
  /** Under the next change number. */
  const note = (what: string) => {
    const change = ++counters.change;
    const content = `${call}: ${what}`;
    view.put({ key: `change ${change}`, kind: "change", number: change, state: content, cause: id });
    noted.push({ change, content });
  };
  const takeNumber = (): number | null => {
    if (counters.fresh < settings.size) return ++counters.fresh;
    const freed = view.all("freed");
    const chosen = freed[settings.random(freed.length)];
    if (chosen) view.delete(chosen.key);
    return chosen?.number ?? null;
  };
  /** Of the device's current badge, which another one may have had. */
  const takePlace = () => {
    const place = `current ${device}`;
    for (const other of view.all("badge")) if (other.place === place) view.put({ ...other, place: null });
    return place;
  };
  const issue = (number: number) => {
    const [place, list] = [takePlace(), ++counters.list];
    const issued = {
      key: `badge ${number}`,
      kind: "badge",
      device,
      user,
      state: "active",
      number,
      list,
      place,
    } as const;
    view.put(issued);
    note(`${issued.key} active ${device}/${user}`);
    return answerBadge(issued);
  };
  const login = (): Result | null => {
    if (badge?.place === null) {
      view.put({ ...badge, place: takePlace() });
      note(`${badge.key} current`);
    }
    return badge ? answerBadge(badge) : null;
  };
  const step = (state: string) => {
    const named = view.get(`badge ${subject}`);
    if (!named || named.state === "revoked" || named.state === state) return answer(named?.state ?? "unknown");
    view.put({ ...named, state, place: state === "revoked" ? null : named.place });
    note(`${named.key} ${state}`);
    return answer(state);
  };
  /** Of the badges that were there when a block began. */
  const revokeSome = (by: Row) => {
    const isDue = (row: Row) => row.user === by.user && row.state !== "revoked" && row.list <= by.list;
    const due = view.all("badge").filter(isDue);
    for (const revoked of due.slice(0, CHUNK_BADGES)) {
      view.put({ ...revoked, state: "revoked", place: null });
      note(`${revoked.key} revoked by ${by.cause}`);
    }
    if (due.length <= CHUNK_BADGES) view.put({ ...by, state: "done" });
  };

  const decisions: Record<Kind, () => Result | null> = {
    fault() {
      view.put({ key: `badge ${id}`, kind: "badge", state: "refused by D1" });
      return answer("D1 took it");
    },
    login: () => login() ?? answer("none"),
    issue() {
      if (badge || block()) return login() ?? answer("blocked");
      const number = takeNumber();
      return number === null ? answer("exhausted") : issue(number);
    },
    suspend: () => step("suspended"),
    resume: () => step("active"),
    revoke: () => step("revoked"),
    invite() {
      const key = `invitation ${id}`;
      // The object lost its results: the row tells.
      const made = view.get(key);
      const number = made?.number ?? takeNumber();
      if (number === null) return answer("exhausted");
      if (!made) {
        view.put({ key, kind: "invitation", state: "pending", number });
        note(`${key} pending ${number}`);
      }
      return answer(`invited ${number}`);
    },
    claim() {
      if (!invitation || block() || badge) return answer("not claimed");
      view.put({ ...invitation, state: "claimed" });
      return issue(invitation.number);
    },
    withdraw() {
      if (!invitation) return answer("not withdrawn");
      view.put({ ...invitation, state: "revoked" });
      view.put({ key: `freed ${invitation.number}`, kind: "freed", number: invitation.number });
      note(`${invitation.key} revoked`);
      return answer("withdrawn");
    },
    block() {
      const hasBegun = view.all("change").some((row) => row.cause === id && row.state.endsWith(`: blocked ${user}`));
      const other = block();
      if (!hasBegun && other) return other.state === "revoking" ? null : answer("blocked already");
      if (!hasBegun) {
        view.put({ key: `block ${user}`, kind: "block", user, state: "revoking", list: counters.list, cause: id });
        note(`blocked ${user}`);
      }
      const begun = block();
      if (!hasBegun && begun) revokeSome(begun);
      if (block()?.cause === id && block()?.state === "revoking") return null;
      const mine = view.all("change").filter((row) => row.cause === id || row.state.endsWith(` by ${id}`));
      const facts = mine.map(({ number, state }) => ({ change: number, content: state }));
      return answer(`revoked ${mine.length - 1}`, null, facts);
    },
    chunk() {
      const due = settings.remembered ?? block();
      if (due?.state === "revoking") revokeSome(due);
      return answer("");
    },
    unblock() {
      const blocked = block();
      if (blocked?.state === "revoking" && settings.unblockFinishes) return null;
      if (!blocked) return answer("not blocked");
      view.delete(blocked.key);
      note(`unblocked ${user}`);
      return answer("unblocked");
    },
  };
  return decisions[command.kind]();
}
