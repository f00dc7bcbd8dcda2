/** What a driver is asked to do: one call, many times over. */
export interface Drive {
  call: { method: string; path: string; headers: Record<string, string>; body?: string };
  times: number;
  /** Whether log lines are written, or discarded once they are made. */
  logs: boolean;
  /** `nothing`: the call is made and a handler that does nothing responds, to tell what the driver itself costs. */
  subject: "worker" | "nothing";
}

/** The last response; all before it had its status and its length. */
export interface Driven {
  status: number;
  body: string;
}

/** Where a driver takes its orders; every other path is the Worker's own. */
export const DRIVE_PATH = "/own-cost";
