/**
 * Whether a joined row of `application` has a webhook URL and subscribes to an event (contract section 18).
 *
 * @param event the event's name, as an SQL expression
 * @returns an SQL condition
 */
export const isSubscribedTo = (event: string): string => `application.webhook_url IS NOT NULL
    AND instr(',' || application.events || ',', ',' || (${event}) || ',') > 0`;

/** State of a new event, as an SQL expression on a joined row of `application`. */
export const NEW_EVENT_STATE = "iif(application.webhook_held_at IS NULL, 'pending', 'held')";

/**
 * The statement that records the events of changed badges, for the application `?2` if it subscribes to them. It returns
 * the IDs of the recorded events as `written`.
 *
 * @param row SQL expressions for the event's columns; `createdAt` in milliseconds
 * @param from the changed badges: the SQL after FROM, up to its conditions
 * @param condition which of them have such an event, as an SQL condition
 */
export const insertEventsOf = (
  row: { id: string; event: string; payload: string; createdAt: string },
  from: string,
  condition = "true",
): string => `
  INSERT INTO webhook_event (application_id, id, event, payload, state, due_at, created_at)
  SELECT ?2, ${row.id}, ${row.event}, ${row.payload}, ${NEW_EVENT_STATE}, 0, ${row.createdAt}
  FROM ${from}
  JOIN application ON application.id = ?2 AND ${isSubscribedTo(row.event)}
  WHERE ${condition}
  ON CONFLICT DO NOTHING
  RETURNING id AS written`;
