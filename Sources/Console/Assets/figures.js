// Streams' figures in the form that tiles and pages show.
import { get } from './api.js';

/** `slot`: {app, name}. Null when nobody publishes or plays the stream. */
export async function figuresOf({ app, name }) {
  const { stream } = await get(`/streams/${encodeURIComponent(app)}/${encodeURIComponent(name)}`);
  return stream && figures(stream);
}

// Bytes of names in one call's URL.
const longestNames = 4000;

/** The figures of many slots in few calls: a map by "app/name", without unused slots. */
export async function figuresOfAll(slots) {
  const found = new Map();
  const pages = [[]];
  let length = 0;
  for (const slot of slots) {
    const name = `${slot.app}/${slot.name}`;
    if (name.includes(',')) {
      // A device may push to any name, but commas separate the names of a list.
      const stream = await figuresOf(slot);
      if (stream) found.set(name, stream);
      continue;
    }
    const more = encodeURIComponent(name).length + 3;
    if (pages.at(-1).length === 100 || length + more > longestNames) { pages.push([]); length = 0; }
    pages.at(-1).push(name);
    length += more;
  }
  for (const names of pages) {
    if (!names.length) continue;
    const { list } = await get('/streams', { streams: names.join(), limit: 100 });
    for (const stream of list) found.set(`${stream.app}/${stream.name}`, figures(stream));
  }
  return found;
}

/** Figures from a stream in an answer. */
export function figures(stream) {
  return {
    ...stream,
    bitsPerSecond: (stream.video?.bitsPerSecond ?? 0) + (stream.audio?.bitsPerSecond ?? 0),
    verdict: stream.health?.verdict ?? null,
    reasons: stream.health?.reasons ?? [],
    worstBehindMs: stream.worstBehindMs ?? null,
  };
}

/** Whether a stream has sound and no picture. */
export const isSoundOnly = (stream) => Boolean(stream?.audio && !stream.video);
