// For the console: player.seek(120), player.episode.runs[0].locate(0, 120).
globalThis.player = start();
