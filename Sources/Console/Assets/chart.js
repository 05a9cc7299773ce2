// A line chart of figures over time. Hover or the arrow keys show a value.
import { h, setText } from './dom.js';
import { clock } from './format.js';
import { t } from './i18n.js';

const height = 120, left = 68, right = 6, top = 8, bottom = 20;

/** chart('Bit rate', bits) → {element, update(points), end()}; points: [{at: ISO text, value: number or null}]. After `end` the newest is no present value. */
export function chart(name, format) {
  const shown = h('b', { 'aria-live': 'off' });
  const picture = h('svg', { class: 'chart', height, role: 'img', tabindex: '0' });
  // As wide as it is shown: letters keep their size.
  let width = 600;
  const element = h('figure', { class: 'chart-box' }, h('figcaption', null, h('span', null, name), shown), picture);
  let points = [];
  let at = null;
  let scale = 1;
  let isOver = false;

  // By time: there are no points while the stream was away.
  let from = 0, span = 1, step = Infinity;
  const x = (index) => left + (times[index] - from) / span * (width - left - right);
  let times = [];

  function place() {
    times = points.map((point) => Date.parse(point.at));
    from = times[0] ?? 0;
    span = Math.max(1, (times.at(-1) ?? 0) - from);
    const steps = times.slice(1).map((time, index) => time - times[index]).sort((one, other) => one - other);
    step = steps[Math.floor(steps.length / 2)] ?? Infinity;
  }

  function nearest(share) {
    const time = from + share * span;
    let best = 0;
    times.forEach((each, index) => { if (Math.abs(each - time) < Math.abs(times[best] - time)) best = index; });
    return best;
  }
  const y = (value) => height - bottom - value / scale * (height - top - bottom);

  function draw() {
    width = Math.max(240, picture.clientWidth || 600);
    picture.setAttribute('viewBox', `0 0 ${width} ${height}`);
    const known = points.filter((point) => point.value !== null && point.value !== undefined);
    const newest = known.at(-1);
    scale = nice(Math.max(1e-9, ...known.map((point) => point.value)));
    picture.replaceChildren();
    if (!known.length) {
      picture.append(h('text', { x: left, y: height / 2 }, t('No figures yet.')));
      setText(shown, '');
      return;
    }
    const lines = [];
    let pen = '';
    points.forEach((point, index) => {
      if (point.value === null || point.value === undefined) { pen = ''; return; }
      if (index && times[index] - times[index - 1] > 2.5 * step) pen = '';
      lines.push(`${pen ? 'L' : 'M'}${x(index).toFixed(1)} ${y(point.value).toFixed(1)}`);
      pen = 'down';
    });
    picture.append(
      h('line', { class: 'axis', x1: left, x2: width - right, y1: y(0), y2: y(0) }),
      h('line', { class: 'axis', x1: left, x2: width - right, y1: y(scale), y2: y(scale) }),
      h('text', { x: left - 6, y: y(scale) + 4, 'text-anchor': 'end' }, format(scale)),
      h('text', { x: left - 6, y: y(0) + 4, 'text-anchor': 'end' }, format(0)),
      h('text', { x: left, y: height - 4 }, points.length > 1 && clock(points[0].at)),
      h('text', { x: width - right, y: height - 4, 'text-anchor': 'end' }, clock(points.at(-1).at)),
      h('path', { class: 'line', d: lines.join('') }));
    if (known.length === 1) picture.append(h('circle', { class: 'dot', cx: x(points.indexOf(newest)), cy: y(newest.value), r: 3.5 }));
    const point = at === null ? newest : points[Math.min(at, points.length - 1)];
    if (at !== null) {
      const index = Math.min(at, points.length - 1);
      picture.append(h('line', { class: 'cursor', x1: x(index), x2: x(index), y1: top, y2: y(0) }));
      if (point.value !== null) picture.append(h('circle', { class: 'dot', cx: x(index), cy: y(point.value), r: 3.5 }));
    }
    setText(shown, at === null ? (isOver ? '' : format(point.value)) : `${format(point.value)} · ${clock(point.at)}`);
    picture.setAttribute('aria-label', `${name}: ${format(newest.value)}`);
  }

  new ResizeObserver(() => { if (picture.clientWidth && Math.abs(picture.clientWidth - width) > 1) draw(); }).observe(picture);
  picture.addEventListener('pointermove', (event) => {
    const box = picture.getBoundingClientRect();
    const share = ((event.clientX - box.left) / box.width * width - left) / (width - left - right);
    at = nearest(share);
    draw();
  });
  picture.addEventListener('pointerleave', () => { at = null; draw(); });
  picture.addEventListener('blur', () => { at = null; draw(); });
  picture.addEventListener('keydown', (event) => {
    if (!points.length) return;
    const step = { ArrowLeft: -1, ArrowRight: 1, PageUp: -10, PageDown: 10 }[event.key];
    if (event.key === 'Home') at = 0;
    else if (event.key === 'End') at = points.length - 1;
    else if (step) at = Math.max(0, Math.min(points.length - 1, (at ?? points.length - 1) + step));
    else return;
    event.preventDefault();
    shown.setAttribute('aria-live', 'polite');
    draw();
  });
  return { element, update(next) { points = next; isOver = false; place(); draw(); }, end() { if (!isOver) { isOver = true; draw(); } } };
}

/** The next of 1, 2, 5, 10 … times a power of ten. */
function nice(value) {
  const power = 10 ** Math.floor(Math.log10(value));
  return [1, 2, 5, 10].find((step) => step * power >= value) * power;
}
