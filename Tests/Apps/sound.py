"""Sound that a page plays, measured in the page itself."""


def loudness(place):
    """A script whose value is how loud the video within `place`, an expression for an element, is at most within a while; 0 when the page does not
    play it. The fake microphone beeps once a second."""
    return """(async () => {
        const video = (PLACE).querySelector('video'), context = new AudioContext(), analyser = context.createAnalyser();
        context.createMediaStreamSource(video.srcObject).connect(analyser);
        await context.resume();
        const samples = new Float32Array(analyser.fftSize), end = performance.now() + 2200;
        let most = 0;
        while (performance.now() < end) {
            await new Promise((resolve) => setTimeout(resolve, 20));
            analyser.getFloatTimeDomainData(samples);
            most = Math.max(most, ...samples.map(Math.abs));
        }
        await context.close();
        return video.muted || video.paused ? 0 : most;
    })()""".replace("PLACE", place)
