import LibC
import Sockets

/// All viewers, on the thread that calls `run`: only paced joins and reads. Not Sendable.
final class ViewerLoop {
    private(set) var viewers: [Viewer] = []
    private let target: Target
    private let epoll: Epoll
    /// Viewers without a keyframe yet (or, without video, a frame). They are served between a few events of the others, so that a join's
    /// time is the server's and not the time that this loop takes to read a keyframe hundreds of times.
    private let joiners: Epoll
    private var joinerCount = 0
    /// One read buffer for all, so that it stays in the cache.
    private let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: 256 << 10, alignment: 64)
    private var planned: [Plan] = []
    private var nextPlanned = 0
    private var windowStartNs = UInt64.max
    /// Delay after which a refused or cut viewer returns; nil for never.
    var comesAgainNs: UInt64?
    /// Viewers that will return, in order of time.
    private var returning: [(dueNs: UInt64, index: Int)] = []
    private var nextReturning = 0
    /// The reasons given to viewers that were closed, and their counts.
    private(set) var endings: [String: Int] = [:]
    /// Viewers closed although they had what a player needs to start.
    private(set) var cuts = 0

    private static let joinersToken = UInt64.max
    /// Events of other viewers between two checks of the joiners.
    private static let eventsBetweenJoiners = 8

    /// A planned join.
    struct Plan {
        var dueNs: UInt64
        var name: String
        var room: Int
        var hasVideo = true
        var receiveBufferBytes: Int?
    }

    init(target: Target) throws(LoadError) {
        self.target = target
        self.epoll = try Epoll.make()
        self.joiners = try Epoll.make()
        try self.epoll.add(self.joiners, token: Self.joinersToken)
    }

    deinit {
        for viewer in self.viewers { viewer.close("the run is over") }
        self.buffer.deallocate()
    }

    /// Sets the joins to make, in order of time.
    func plan(_ joins: [Plan]) {
        self.planned = joins
        self.nextPlanned = 0
    }

    /// Serves the viewers until the given time or `isDone`, checked about every 10 ms.
    func run(untilNs end: UInt64, isDone: (() -> Bool)? = nil) throws(LoadError) {
        var nextQuestion = Clock.now()
        while true {
            let now = Clock.now()
            guard now < end else { return }
            if let isDone, now >= nextQuestion {
                if isDone() { return }
                nextQuestion = now + 10_000_000
            }
            try self.joinWhatIsDue(now)
            var events = 0
            try self.epoll.poll(timeoutNs: self.timeoutNs(now, end)) { (event) throws(LoadError) in
                if event.token == Self.joinersToken { return try self.serveJoiners() }
                let viewer = self.viewers[Int(event.token)]
                let isOpen = viewer.phase != .closed
                self.handle(event, viewer)
                if isOpen, viewer.phase == .closed { self.noteEnd(viewer, Int(event.token)) }
                events += 1
                if events % Self.eventsBetweenJoiners == 0 { try self.serveJoiners() }
            }
        }
    }

    private func serveJoiners() throws(LoadError) {
        if self.nextPlanned < self.planned.count { try self.joinWhatIsDue(Clock.now()) }
        guard self.joinerCount > 0 else { return }
        try self.joiners.poll(timeoutNs: 0) { (event) throws(LoadError) in
            let viewer = self.viewers[Int(event.token)]
            if event.isWritable, viewer.phase == .connecting {
                viewer.connected()
                if viewer.phase != .closed { try self.joiners.modify(viewer.descriptor, token: event.token, [.read, .hangUp]) }
            }
            self.handle(event, viewer)
            guard viewer.phase == .closed || viewer.hasJoined else { return }
            self.joinerCount -= 1
            if viewer.phase == .closed { self.noteEnd(viewer, Int(event.token)) }
            // Closing its descriptor has already removed a closed one.
            guard viewer.phase != .closed else { return }
            try self.joiners.remove(viewer.descriptor)
            try self.epoll.add(viewer.descriptor, token: event.token, [.read, .hangUp])
        }
    }

    /// Starts measuring, for viewers that join later too.
    func beginWindow(_ now: UInt64) {
        self.windowStartNs = now
        for viewer in self.viewers { viewer.check.windowStartNs = now }
    }

    func endWindow(_ now: UInt64) {
        for viewer in self.viewers { viewer.check.windowEndNs = now }
    }

    func stall(_ index: Int) throws(LoadError) {
        let viewer = self.viewers[index]
        // A joiner is in the other selector, and has nothing yet to stall on.
        guard viewer.phase == .playing, viewer.hasJoined else { return }
        viewer.stall()
        try self.epoll.modify(viewer.descriptor, token: UInt64(index), .hangUp)
    }

    func resume(_ index: Int) throws(LoadError) {
        let viewer = self.viewers[index]
        guard viewer.phase == .stalled else { return }
        viewer.resume()
        try self.epoll.modify(viewer.descriptor, token: UInt64(index), [.read, .hangUp])
    }

    private func timeoutNs(_ now: UInt64, _ end: UInt64) -> UInt64 {
        var next = min(end, now + 10_000_000)
        if self.nextPlanned < self.planned.count { next = min(next, self.planned[self.nextPlanned].dueNs) }
        if self.nextReturning < self.returning.count { next = min(next, self.returning[self.nextReturning].dueNs) }
        return next > now ? next - now : 0
    }

    private func joinWhatIsDue(_ now: UInt64) throws(LoadError) {
        while self.nextReturning < self.returning.count, self.returning[self.nextReturning].dueNs <= now {
            let next = self.returning[self.nextReturning]
            self.nextReturning += 1
            let before = self.viewers[next.index]
            let viewer = try Viewer(
                target: self.target, name: before.name, room: before.room, hasVideo: before.hasVideo, receiveBufferBytes: nil,
                source: next.index)
            viewer.check.windowStartNs = self.windowStartNs
            self.viewers[next.index] = viewer
            try self.joiners.add(viewer.descriptor, token: UInt64(next.index), [.read, .write, .hangUp])
            self.joinerCount += 1
        }
        if self.nextReturning > 10_000 {
            self.returning.removeFirst(self.nextReturning)
            self.nextReturning = 0
        }
        while self.nextPlanned < self.planned.count, self.planned[self.nextPlanned].dueNs <= now {
            let plan = self.planned[self.nextPlanned]
            self.nextPlanned += 1
            let viewer = try Viewer(
                target: self.target, name: plan.name, room: plan.room, hasVideo: plan.hasVideo, receiveBufferBytes: plan.receiveBufferBytes,
                source: self.viewers.count)
            viewer.check.windowStartNs = self.windowStartNs
            self.viewers.append(viewer)
            try self.joiners.add(viewer.descriptor, token: UInt64(self.viewers.count - 1), [.read, .write, .hangUp])
            self.joinerCount += 1
        }
    }

    private func noteEnd(_ viewer: Viewer, _ index: Int) {
        self.endings[viewer.failure ?? "closed", default: 0] += 1
        if viewer.hasJoined { self.cuts += 1 }
        if let delay = self.comesAgainNs { self.returning.append((Clock.now() + delay, index)) }
    }

    /// Keeps the first `count` served viewers. Closes all others, and cancels those that would return.
    func keep(_ count: Int) {
        self.comesAgainNs = nil
        self.returning = []
        self.nextReturning = 0
        self.plan([])
        var left = count
        for viewer in self.viewers where viewer.phase != .closed {
            if viewer.hasJoined || viewer.check.messages > 0, left > 0 {
                left -= 1
            } else {
                if !viewer.hasJoined { self.joinerCount -= 1 }
                viewer.close("let go")
            }
        }
        if count == 0 { self.viewers = [] }
        self.endings = [:]
        self.cuts = 0
    }

    private func handle(_ event: Epoll.Event, _ viewer: Viewer) {
        guard viewer.phase != .closed else { return }
        if event.isReadable {
            self.read(viewer)
        } else if event.isHungUp {
            viewer.close("the server closed the connection")
        }
    }

    private func read(_ viewer: Viewer) {
        let count = recv(viewer.descriptor, self.buffer.baseAddress, self.buffer.count, 0)
        if count > 0 {
            viewer.received(UnsafeRawBufferPointer(rebasing: self.buffer[..<count]), nowNs: Clock.now())
        } else if count == 0 {
            viewer.close("the server closed the connection")
        } else if errno != EAGAIN && errno != EINTR {
            viewer.close("recv failed: \(String(cString: strerror(errno)))")
        }
    }
}
