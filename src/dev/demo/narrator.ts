import { bold, faint } from "../../admin/command-line/output.ts";
import { fold, foldCommand, shownJson, withoutSecrets } from "./text.ts";

/** The story cannot continue. The message is one plain line for the reader. */
export class DemoFailure extends Error {
  override readonly name = "DemoFailure";
}

/** Checks a promise of the contract. @throws DemoFailure that says what was expected */
export function must(holds: boolean, expected: string): asserts holds {
  if (!holds) throw new DemoFailure(`the contract says otherwise: ${expected}`);
}

/** Credentials, and the headers of paging and of repeated requests. */
const SHOWN_HEADERS = ["applicationid", "applicationsecret", "udid", "idempotency-key", "pagination-cursor"];
const INDENT = "    ";

/** Tells the story on the terminal: for each step, what was sent, what came back, and why. */
export class Narrator {
  readonly #print: (line: string) => void;
  #steps = 0;

  constructor(print: (line: string) => void) {
    this.#print = print;
  }

  /**
   * Tells one step.
   *
   * @param why one line on what the reader has just seen
   * @throws DemoFailure that names the step, whatever went wrong in it
   */
  async step<T>(title: string, why: string, act: () => Promise<T>): Promise<T> {
    this.#steps += 1;
    this.#print("");
    this.#lines(`${String(this.#steps).padStart(2)}  `, title, bold);
    try {
      const result = await act();
      this.#lines(INDENT, why, faint);
      return result;
    } catch (error) {
      throw new DemoFailure(`Step ${this.#steps}, "${title}": ${error instanceof Error ? error.message : error}`);
    }
  }

  /** Something that is sent: a request, a command, a call. */
  sent(text: string): void {
    this.#lines(`${INDENT}> `, withoutSecrets(text));
  }

  /** A command that is run. It can be pasted. */
  command(words: readonly string[]): void {
    for (const line of foldCommand(`${INDENT}> `, words)) this.#print(line);
  }

  /** Something that came back. */
  received(text: string): void {
    this.#lines(`${INDENT}< `, text);
  }

  /** A remark within a step. */
  note(text: string): void {
    this.#lines(INDENT, text);
  }

  /** A line between the steps. */
  say(text: string): void {
    this.#lines("", text);
  }

  /** The runtime's `fetch`, which also prints the request and the response. */
  readonly fetch = async (url: string, init: RequestInit): Promise<Response> => {
    const { method = "GET", body } = init;
    this.sent(`${method} ${shownTarget(url)}`);
    for (const line of shownHeaders(new Headers(init.headers))) this.#lines(`${INDENT}  `, withoutSecrets(line));
    if (typeof body === "string") this.#lines(`${INDENT}  `, shownJson(body));
    const response = await fetch(url, init);
    const text = await response.clone().text();
    this.received(`${response.status} ${shownJson(text)}`);
    for (const line of shownHeaders(response.headers)) this.#lines(`${INDENT}  `, line);
    return response;
  };

  #lines(first: string, text: string, style: (text: string) => string = (plain) => plain): void {
    for (const line of fold(first, text)) this.#print(style(line));
  }
}

function shownTarget(url: string): string {
  const { pathname, search } = new URL(url);
  return `${pathname}${search}`;
}

function shownHeaders(headers: Headers): string[] {
  return SHOWN_HEADERS.filter((name) => headers.has(name)).map((name) => `${name}: ${headers.get(name)}`);
}
