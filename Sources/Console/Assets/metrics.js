// The server's metrics, and how they went since the console was opened.
import { load } from './api.js';

/** Reads metrics in Prometheus' text format: those without labels by name, and the labelled ones that pages show by their label. */
function read(text) {
  const values = { lags: [], protocols: new Map(), limits: new Map(), disks: new Map(), received: 0, sent: 0 };
  for (const line of text.split('\n')) {
    const found = /^(\w+) (\S+)$/.exec(line);
    if (found) values[found[1]] = Number(found[2]);
    const [, name, label, number] = /^(\w+)\{\w+="([^"]+)"\} (\S+)$/.exec(line) ?? [];
    const value = Number(number);
    if (name === 'earshot_event_loop_lag_seconds') values.lags[Number(label)] = value * 1000;
    else if (name === 'earshot_connections_by_protocol') values.protocols.set(label, value);
    else if (name === 'earshot_limit_hits_total') values.limits.set(label, value);
    else if (name === 'earshot_disk_free_bytes') values.disks.set(label, value);
    else if (name === 'earshot_received_bytes_total') values.received += value;
    else if (name === 'earshot_sent_bytes_total') values.sent += value;
  }
  return values;
}

/** Readings since the console was opened, at most these many, and those of an hour at least. */
export const readings = [];
const mostReadings = 720;
// Two readings that follow each other more closely say little about a rate.
const leastMs = 2000;

/** What was counted between a reading and the one before, a second; null for the first, and after a restart. */
export function rate(index, name) {
  const [former, now] = [readings[index - 1], readings[index]];
  if (!former || now[name] < former[name]) return null;
  return (now[name] - former[name]) * 1000 / (now.ms - former.ms);
}

export async function readMetrics() {
  const values = read(await (await load('/metrics')).text());
  const ms = performance.now();
  if (!readings.length || ms - readings.at(-1).ms >= leastMs) {
    readings.push({ ms, at: new Date().toISOString(), received: values.received, sent: values.sent, cpu: values.process_cpu_seconds_total, memory: values.process_resident_memory_bytes, streams: values.earshot_streams_live, viewers: values.earshot_viewers,
      lag: values.earshot_loop_lag_seconds * 1000 });
    if (readings.length > mostReadings) readings.shift();
  }
  return values;
}
