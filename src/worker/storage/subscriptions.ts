/**
 * Whether the application of a joined row of `application` wants events of this name: it has a webhook URL and subscribes
 * to them (contract section 18).
 *
 * @param event an SQL expression
 * @returns an SQL condition
 */
export const isSubscribedTo = (event: string): string => `application.webhook_url IS NOT NULL
    AND instr(',' || application.events || ',', ',' || (${event}) || ',') > 0`;
