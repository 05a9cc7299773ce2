/// One run: publishers, viewers, a measured window, an account. Runs on the calling thread.
struct Scenario {
    var target: Target
    var mode: RunResult.Mode
    var rooms: Int
    var viewersPerRoom: Int
    var shape: StreamShape
    /// Interval between joins, in microseconds.
    var joinIntervalUs: Int
    var warmupSeconds: Double
    var seconds: Double
    /// Viewers that already play when the joins of mode join begin.
    var players: Int
    var stalledViewers: Int
    /// Receive buffer of viewers that will stall. It is small, so that the stall reaches the server and not only this machine's buffers.
    var stalledReceiveBufferBytes: Int
    var namePrefix: String
    var server: ProcessStats?

    /// Time for frames in flight to arrive after the publishers stop. Nanoseconds.
    private static let drainNs: UInt64 = 5_000_000_000
    /// Time spent reading before a stall, so that it happens in mid-stream.
    private static let stallDelayNs: UInt64 = 2_000_000_000
    private static let settleNs: UInt64 = 2_000_000_000

    func run(into result: inout RunResult) throws(LoadError) {
        result.memory.beforeKiB = self.residentKiB()
        if self.mode == .idle { return try self.runIdle(into: &result) }
        let names = (0..<self.rooms).map { "\(self.namePrefix)-\($0)" }
        let publisher = try Publisher(target: self.target, names: names, shape: self.shape)
        defer { publisher.close() }
        try publisher.start()
        do throws(LoadError) {
            try self.runLive(publisher, names, into: &result)
        } catch {
            // The publisher's failure best explains the viewers'.
            try publisher.stop()
            throw error
        }
    }

    // MARK: Idle viewers

    private func runIdle(into result: inout RunResult) throws(LoadError) {
        let loop = try ViewerLoop(target: self.target)
        let end = self.plan(loop, names: ["\(self.namePrefix)-nobody"])
        try loop.run(untilNs: end + Self.settleNs)
        let steady = self.readCPU()
        try loop.run(untilNs: Clock.now() + Self.nanoseconds(self.seconds))
        self.account(steady, into: &result)
        self.countFailures(loop, into: &result)
        self.recordMemory(into: &result)
    }

    // MARK: Live viewers

    private func runLive(_ publisher: Publisher, _ names: [String], into result: inout RunResult) throws(LoadError) {
        let loop = try ViewerLoop(target: self.target)
        let gopSeconds = Double(self.shape.gop) / Double(self.shape.framesPerSecond)
        if self.mode == .join {
            // A whole GOP, so that a joiner always finds one cached.
            Clock.sleep(untilNs: Clock.now() + Self.nanoseconds(gopSeconds + self.warmupSeconds))
            if self.players > 0 { try self.playAlone(loop, names, into: &result) }
        }
        let lastJoin = self.plan(loop, names: names)
        if self.mode != .join { try loop.run(untilNs: lastJoin + Self.nanoseconds(self.warmupSeconds)) }
        let reading = self.readCPU()
        loop.beginWindow(reading.timeNs)
        let end = self.mode == .join ? lastJoin : reading.timeNs + Self.nanoseconds(self.seconds)
        if self.mode == .stall { result.stall = try self.stall(loop, until: end) }
        try loop.run(untilNs: end)
        loop.endWindow(Clock.now())
        self.account(reading, into: &result)
        self.recordMemory(into: &result)
        if self.players > 0 { result.players?.meanwhile = Self.spread(self.playersLatency(loop)) }
        // A server without a cache shows its first keyframe only now.
        if self.mode == .join { try loop.run(untilNs: lastJoin + Self.nanoseconds(gopSeconds + 1)) }
        if self.mode == .stall { try self.resume(loop, into: &result) }
        try publisher.stop()
        result.publisherWorstDelayMs = publisher.worstDelayMs
        try loop.run(untilNs: Clock.now() + Self.drainNs, isDone: { self.isComplete(loop, publisher) })
        self.summarise(loop, publisher, into: &result)
    }

    /// The players' latency while nobody joins.
    private func playAlone(_ loop: ViewerLoop, _ names: [String], into result: inout RunResult) throws(LoadError) {
        let joined = self.plan(loop, names: names, viewers: self.players)
        try loop.run(untilNs: joined + Self.settleNs)
        loop.beginWindow(Clock.now())
        try loop.run(untilNs: Clock.now() + Self.nanoseconds(self.seconds))
        result.players = RunResult.Players(
            count: self.players, before: Self.spread(self.playersLatency(loop)), meanwhile: RunResult.Spread())
    }

    private func playersLatency(_ loop: ViewerLoop) -> Histogram {
        var all = Histogram()
        for viewer in loop.viewers.prefix(self.players) { all.add(viewer.check.popLatency()) }
        return all
    }

    /// Plans all joins, evenly spaced; returns when the last is due.
    private func plan(_ loop: ViewerLoop, names: [String], viewers: Int? = nil) -> UInt64 {
        let start = Clock.now()
        let interval = UInt64(self.joinIntervalUs) * 1000
        let joins = (0..<names.count * (viewers ?? self.viewersPerRoom)).map { index in
            ViewerLoop.Plan(
                dueNs: start + UInt64(index) * interval, name: names[index % names.count], room: index % names.count,
                hasVideo: self.shape.videoKbps > 0, receiveBufferBytes: index < self.stalledViewers ? self.stalledReceiveBufferBytes : nil)
        }
        loop.plan(joins)
        return joins.last?.dueNs ?? start
    }

    /// Stops reading on the first viewers and watches the server's memory; returns at `end`.
    private func stall(_ loop: ViewerLoop, until end: UInt64) throws(LoadError) -> RunResult.Stall {
        try loop.run(untilNs: min(end, Clock.now() + Self.stallDelayNs))
        let before = self.residentKiB()
        var highest = before
        for index in 0..<min(self.stalledViewers, loop.viewers.count) { try loop.stall(index) }
        while Clock.now() < end {
            try loop.run(untilNs: min(end, Clock.now() + 50_000_000))
            if let now = self.residentKiB(), let known = highest { highest = max(now, known) }
        }
        var stall = RunResult.Stall(stalledViewers: self.stalledViewers)
        if let before, let highest, self.stalledViewers > 0 {
            stall.growthKiB = highest - before
            stall.growthPerStalledViewerKiB = (highest - before) / Double(self.stalledViewers)
        }
        return stall
    }

    /// Resumes reading. Viewers that the server has given up find the connection's end behind the data in flight; the others must be able
    /// to go on.
    private func resume(_ loop: ViewerLoop, into result: inout RunResult) throws(LoadError) {
        for index in 0..<min(self.stalledViewers, loop.viewers.count) { try loop.resume(index) }
        try loop.run(untilNs: Clock.now() + Self.settleNs)
        let stalled = loop.viewers.prefix(self.stalledViewers)
        result.stall?.disconnected = stalled.count { $0.phase == .closed }
        result.loss.damaged += stalled.reduce(0) { $0 + $1.check.damaged + $1.check.foreign }
    }

    // MARK: Accounts

    private struct CPUReading {
        var timeNs: UInt64
        var serverUs: Int?
        var serverUserUs: Int?
        var ownUs: Int
        var machineUs: Int?
    }

    private func readCPU() -> CPUReading {
        let server = self.server?.cpuTimes()
        return CPUReading(
            timeNs: Clock.now(), serverUs: server.map { $0.user + $0.system }, serverUserUs: server?.user,
            ownUs: ProcessStats.ownCPUMicroseconds(),
            machineUs: ProcessStats.machineCPUMicroseconds())
    }

    private func account(_ start: CPUReading, into result: inout RunResult) {
        let end = self.readCPU()
        result.seconds = Double(end.timeNs - start.timeNs) / 1e9
        result.generatorCPUPercent = Double(end.ownUs - start.ownUs) / 1e4 / result.seconds
        guard let first = start.serverUs, let last = end.serverUs else { return }
        result.serverCPUSeconds = Double(last - first) / 1e6
        if let before = start.serverUserUs, let after = end.serverUserUs, last > first {
            result.serverUserPercent = Double(after - before) / Double(last - first) * 100
        }
        guard let before = start.machineUs, let after = end.machineUs else { return }
        // The three are counted in different ways and do not add up to the last tick.
        let others = max(0, after - before - (last - first) - (end.ownUs - start.ownUs))
        result.othersCPUPercent = Double(others) / 1e4 / result.seconds
    }

    /// Whether every viewer that reads has the last frame of its room.
    private func isComplete(_ loop: ViewerLoop, _ publisher: Publisher) -> Bool {
        loop.viewers.dropFirst(self.stalledViewers).allSatisfy { viewer in
            viewer.phase == .closed || self.tail(viewer, publisher) == 0
        }
    }

    /// Frames missing at the end of a viewer's tracks.
    private func tail(_ viewer: Viewer, _ publisher: Publisher) -> Int {
        let sent = publisher.sent(room: viewer.room)
        let video = viewer.check.video.next.map { Int(sent.video) - Int($0) } ?? 0
        let audio = viewer.check.audio.next.map { Int(sent.audio) - Int($0) } ?? 0
        return video + audio
    }

    private func summarise(_ loop: ViewerLoop, _ publisher: Publisher, into result: inout RunResult) {
        var latency = Histogram()
        var join = Histogram()
        var answer = Histogram()
        var medians: [Double] = []
        for (index, viewer) in loop.viewers.enumerated().dropFirst(self.stalledViewers) {
            let check = viewer.check
            latency.add(check.latency)
            if let median = check.latency.milliseconds(at: 0.5) { medians.append(median) }
            if let time = viewer.check.firstKeyframeNs, index >= self.players {
                join.record(microseconds: (time - viewer.startedNs) / 1000)
            }
            if let time = viewer.answeredNs, index >= self.players { answer.record(microseconds: (time - viewer.startedNs) / 1000) }
            result.loss.missing += check.video.missing + check.audio.missing + self.tail(viewer, publisher)
            result.loss.duplicates += check.video.duplicates + check.audio.duplicates
            result.loss.outOfOrder += check.video.outOfOrder + check.audio.outOfOrder
            result.loss.backwardTimestamps += check.video.backwardTimestamps + check.audio.backwardTimestamps
            result.loss.damaged += check.damaged + check.foreign
        }
        for viewer in loop.viewers {
            result.messages += viewer.check.windowMessages
            result.bytes += viewer.check.windowBytes
        }
        self.countFailures(loop, into: &result)
        result.latency = Self.spread(latency)
        result.join = Self.spread(join)
        result.playAnswer = Self.spread(answer)
        medians.sort()
        result.worstViewerMs = medians.last
        result.medianViewerMs = medians.isEmpty ? nil : medians[medians.count / 2]
        if let seconds = result.serverCPUSeconds, result.messages > 0 {
            result.serverCPUMicrosecondsPerMessage = seconds * 1e6 / Double(result.messages)
            if self.mode == .join { result.serverCPUMicrosecondsPerJoin = seconds * 1e6 / Double(loop.viewers.count - self.players) }
        }
    }

    private func countFailures(_ loop: ViewerLoop, into result: inout RunResult) {
        for viewer in loop.viewers.dropFirst(self.stalledViewers) {
            let gotNothing = self.mode != .idle && viewer.check.messages == 0
            guard viewer.phase != .playing || gotNothing else { continue }
            result.loss.failedViewers += 1
            if result.loss.firstFailure == nil { result.loss.firstFailure = viewer.failure ?? "nothing came while \(viewer.phase)" }
        }
    }

    private func recordMemory(into result: inout RunResult) {
        result.memory.withViewersKiB = self.residentKiB()
        guard let before = result.memory.beforeKiB, let after = result.memory.withViewersKiB else { return }
        result.memory.perViewerKiB = (after - before) / Double(self.rooms * self.viewersPerRoom)
    }

    private func residentKiB() -> Double? {
        self.server?.residentBytes().map { Double($0) / 1024 }
    }

    private static func spread(_ histogram: Histogram) -> RunResult.Spread {
        RunResult.Spread(
            p50: histogram.milliseconds(at: 0.5), p99: histogram.milliseconds(at: 0.99), max: histogram.milliseconds(at: 1))
    }

    private static func nanoseconds(_ seconds: Double) -> UInt64 { UInt64(seconds * 1e9) }
}
