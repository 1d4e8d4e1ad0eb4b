// The part of the plane where rows would be normal, from scores on a grid, for any alpha.
"use strict";

// The score below which a row is an alarm: the largest rate that was sent and is not above alpha.
export function thresholdAt(region, alpha) {
  let at = -1;
  while (at + 1 < region.alphas.length && region.alphas[at + 1] <= alpha) at += 1;
  return at < 0 ? -Infinity : region.thresholds[at];
}

// Two paths: the area where scores reach the threshold, and the line around it. `place` maps grid to canvas.
export function outline(region, threshold, place) {
  const { size, scores } = region, area = new Path2D(), edge = new Path2D();
  const between = (a, b) => (threshold - a) / (b - a);
  for (let j = 0; j + 1 < size; j += 1) {
    for (let i = 0; i + 1 < size; i += 1) {
      const corners = [[i, j], [i + 1, j], [i + 1, j + 1], [i, j + 1]];
      const values = corners.map(([x, y]) => scores[y * size + x]);
      const points = [], crossings = [];
      for (let k = 0; k < 4; k += 1) {
        const next = (k + 1) % 4, inside = values[k] >= threshold;
        if (inside) points.push(corners[k]);
        if (inside !== values[next] >= threshold) {
          const share = between(values[k], values[next]);
          const cross = [corners[k][0] + share * (corners[next][0] - corners[k][0]), corners[k][1] + share * (corners[next][1] - corners[k][1])];
          points.push(cross);
          crossings.push(cross);
        }
      }
      if (points.length > 2) {
        points.forEach((point, at) => (at ? area.lineTo(...place(point)) : area.moveTo(...place(point))));
        area.closePath();
      }
      for (let k = 0; k + 1 < crossings.length; k += 2) { edge.moveTo(...place(crossings[k])); edge.lineTo(...place(crossings[k + 1])); }
    }
  }
  return { area, edge };
}
