/**
 * Whether a joined row of `application` has a webhook URL and subscribes to an event (contract section 18).
 *
 * @param event the event's name, as an SQL expression
 * @returns an SQL condition
 */
export const isSubscribedTo = (event: string): string => `application.webhook_url IS NOT NULL
    AND instr(',' || application.events || ',', ',' || (${event}) || ',') > 0`;
