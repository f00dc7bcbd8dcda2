/**
 * A Worker that responds as D1's REST interface does, from inside the runtime, where the real D1 is, and that puts messages into
 * queues. Outside, each statement of a batch would be several calls of the runtime.
 *
 * That a batch is one transaction here, too, is documented for the binding alone: `doctor --first-day` asks the account. If it is not,
 * a command that fails half-way leaves rows.
 */
export default {
  async fetch(request, env) {
    const { binding, batch, message } = await request.json();
    if (batch === undefined) {
      await env[binding].send(message);
      return Response.json(null);
    }
    try {
      return Response.json(await respond(env[binding], batch));
    } catch (error) {
      return Response.json({ error: String(error.message).replace(/^D1_ERROR: /, "") }, { status: 400 });
    }
  },
};

/** A statement whose rows have columns, of which two may have one name: a batch of the binding gives objects only. */
const RETURNS_ROWS = /^\s*(select|with)\b|\breturning\b/i;

async function respond(d1, batch) {
  const prepared = batch.map(({ sql, params = [] }) => d1.prepare(sql).bind(...params));
  if (prepared.length === 1 && RETURNS_ROWS.test(batch[0].sql)) {
    const [columns, ...rows] = await prepared[0].raw({ columnNames: true });
    const { meta } = await d1.prepare("SELECT 1").run();
    return [{ success: true, meta, results: { columns, rows } }];
  }
  return (await d1.batch(prepared)).map(({ results, meta, success }) => ({
    ...{ success, meta },
    results: { columns: Object.keys(results[0] ?? {}), rows: results.map((row) => Object.values(row)) },
  }));
}
