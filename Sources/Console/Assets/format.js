// The display of numbers and times.
import { language, t } from './i18n.js';

export const none = '–';

const isMissing = (value) => value === null || value === undefined;

/** Bits per second: "1.5 Mbit/s". */
export function bits(value) {
  if (isMissing(value)) return none;
  if (value >= 1e6) return `${(value / 1e6).toFixed(value >= 1e7 ? 0 : 1)} Mbit/s`;
  return `${Math.round(value / 1e3)} kbit/s`;
}

export function bytes(value) {
  if (isMissing(value)) return none;
  const units = ['B', 'KB', 'MB', 'GB', 'TB'];
  let unit = 0;
  while (value >= 1000 && unit < units.length - 1) { value /= 1000; unit += 1; }
  return `${unit && value < 100 ? value.toFixed(1) : Math.round(value)} ${units[unit]}`;
}

export function count(value) { return isMissing(value) ? none : value.toLocaleString(language()); }

export function ms(value) {
  if (isMissing(value)) return none;
  return value < 1000 ? `${Math.round(value)} ms` : `${(value / 1000).toFixed(1)} s`;
}

/** Seconds as "2 h 5 min". */
export function duration(seconds) {
  if (isMissing(seconds)) return none;
  const s = Math.max(0, Math.round(seconds));
  if (s < 60) return `${s} ${t('s')}`;
  if (s < 3600) return `${Math.floor(s / 60)} ${t('min')} ${s % 60} ${t('s')}`;
  if (s < 86400) return `${Math.floor(s / 3600)} ${t('h')} ${Math.floor(s % 3600 / 60)} ${t('min')}`;
  return `${Math.floor(s / 86400)} ${t('d')} ${Math.floor(s % 86400 / 3600)} ${t('h')}`;
}

export function time(text) { return text ? new Date(text).toLocaleString(language(), { dateStyle: 'short', timeStyle: 'medium' }) : none; }

/** Only the time for today, otherwise with the date. */
export function clock(text) {
  if (!text) return none;
  const date = new Date(text);
  const isToday = date.toDateString() === new Date().toDateString();
  return isToday ? date.toLocaleTimeString(language()) : date.toLocaleString(language(), { dateStyle: 'short', timeStyle: 'short' });
}

export function since(text) { return text ? duration((Date.now() - Date.parse(text)) / 1000) : none; }
