import { simulatedCrypto } from "./crypto.ts";
import type { Outgoing } from "./network.ts";
import { requireProcess, runningProcess } from "./process.ts";

/**
 * Puts the simulation in the place of everything that the service takes from its surroundings: the clock, randomness,
 * timers, the network and the log. Code that belongs to no process of the service keeps the real ones.
 */
export function installGlobals(): void {
  const real = { now: Date.now, random: Math.random };
  Date.now = () => runningProcess()?.now ?? real.now();
  Math.random = () => runningProcess()?.platform.serviceDice.next() ?? real.random();
  for (const [level, print] of Object.entries({ log: console.log, warn: console.warn, error: console.error })) {
    Reflect.set(console, level, (...words: unknown[]) => {
      const process = runningProcess();
      if (process) process.platform.trace.add(process.name, `log ${words.join(" ")}`);
      else print(...words);
    });
  }
  replace(
    "crypto",
    simulatedCrypto(() => requireProcess().platform.serviceDice),
  );
  replace("scheduler", { wait: (milliseconds: number) => requireProcess().sleep(milliseconds) });
  installTimers();
  replace("fetch", (url: string | URL, init: Outgoing) => {
    const process = requireProcess();
    return process.platform.network.fetch(process, String(url), init);
  });
  Reflect.set(AbortSignal, "timeout", timeoutSignal);
}

/** `setTimeout` in virtual time; Node's own code and the simulation's keep the real one. */
function installTimers(): void {
  const real = { setTimeout, clearTimeout };
  const clears = new WeakMap<object, () => void>();
  replace("setTimeout", (callback: () => void, milliseconds: number, ...rest: unknown[]) => {
    const process = runningProcess();
    if (!process) return Reflect.apply(real.setTimeout, globalThis, [callback, milliseconds, ...rest]);
    const timer = {};
    clears.set(timer, process.setTimer(callback, milliseconds));
    return timer;
  });
  replace("clearTimeout", (timer: unknown) => {
    const clear = typeof timer === "object" && timer !== null ? clears.get(timer) : undefined;
    if (clear) clear();
    else Reflect.apply(real.clearTimeout, globalThis, [timer]);
  });
}

function replace(name: "crypto" | "scheduler" | "fetch" | "setTimeout" | "clearTimeout", value: object): void {
  Object.defineProperty(globalThis, name, { value, configurable: true, writable: true });
}

/** `AbortSignal.timeout` in virtual time. */
function timeoutSignal(milliseconds: number): AbortSignal {
  const controller = new AbortController();
  const abort = () => controller.abort(new DOMException("The operation timed out.", "TimeoutError"));
  void requireProcess().sleep(milliseconds).then(abort);
  return controller.signal;
}
