import HLS
import NIOCore

extension FuzzTarget {
    /// A request for a playlist and one for media. The lines are `_HLS_msn`, `_HLS_part`, `_HLS_skip` and a name as in their URIs; an empty
    /// line omits the directive.
    static let playlist = FuzzTarget("playlist", maxLength: 256) { input in
        var input = input
        let window = Windows.all[Int(input.byte()) % Windows.all.count]
        let lines = String(decoding: input.rest, as: UTF8.self).split(separator: "\n", maxSplits: 3, omittingEmptySubsequences: false)
        let values = (0..<4).map { $0 < lines.count && !lines[$0].isEmpty ? String(lines[$0]) : nil }
        if let request = read(values[0], values[1], values[2]) { check(request, window) }
        check(name: values[3] ?? "", window)
    }
}

private enum Windows {
    /// Windows before their first playlist, with one, without parts, interrupted, and ended.
    static let all: [MediaWindow] = {
        var windows: [MediaWindow] = []
        do throws(HLSError) {
            var early = try MediaWindow(epoch: "e", firstSequence: 10)
            try early.begin(Windows.format, nowMs: 0)
            try early.append(Windows.part(true), nowMs: 0)
            var ready = early
            for index in 1..<23 { try ready.append(Windows.part(index % 10 == 0), nowMs: Int64(index) * 200) }
            var plain = try MediaWindow(epoch: "e", firstSequence: 10, configuration: .init(isLowLatency: false))
            try plain.begin(Windows.format, nowMs: 0)
            for index in 0..<23 { try plain.append(Windows.part(index % 10 == 0), nowMs: Int64(index) * 200) }
            var interrupted = ready
            interrupted.interrupt(nowMs: 5_000)
            var ended = ready
            ended.end(nowMs: 5_000)
            windows = [early, ready, plain, interrupted, ended]
        } catch {
            fatalError("\(error)")
        }
        return windows
    }()

    private static let format = MediaFormat(initialization: ByteBuffer(string: "init"), codecs: "avc1.64001f", hasVideo: true)

    static func part(_ isKey: Bool) -> MediaPart {
        MediaPart(bytes: ByteBuffer(string: "media"), durationMicros: 200_000, isIndependent: isKey, beginsWithKeyframe: isKey)
    }
}

private func read(_ msn: String?, _ part: String?, _ skip: String?) -> PlaylistRequest? {
    do throws(HLSError) {
        let request = try PlaylistRequest.parse(msn: msn, part: part, skip: skip)
        expect(number(msn) == request.mediaSequence && number(part) == request.part, "another number")
        expect(part == nil || msn != nil, "a part of no segment")
        return request
    } catch {
        guard case .badDirective(let words) = error, !words.isEmpty else { fatalError("\(error)") }
        return nil
    }
}

/// Parses a decimal-integer (RFC 8216bis §4.2) independently of the code under test.
private func number(_ text: String?) -> Int? {
    guard let text else { return nil }
    var value: UInt64 = 0
    for digit in text.utf8 {
        expect((0x30...0x39).contains(digit), "\(text) was taken for a number")
        let (product, isOver) = value.multipliedReportingOverflow(by: 10)
        let (sum, isFar) = product.addingReportingOverflow(UInt64(digit - 0x30))
        expect(!isOver && !isFar, "\(text) was taken for a number")
        value = sum
    }
    return Int(clamping: value)
}

private func check(_ request: PlaylistRequest, _ window: MediaWindow) {
    _ = window.cacheAdvice(for: request)
    switch window.answer(request) {
    case .now, .unavailable: break
    case .badRequest(let words): expect(!words.isEmpty && window.isReady, "refused without a reason")
    case .wait(let point):
        expect(!window.isSatisfied(point), "a wait for what is there")
        expect(point.sequence <= window.lastEnded + 3, "a wait for segment \(point.sequence) after \(window.lastEnded)")
        checkWait(point, window)
    }
}

/// Checks that a waiting request is answered when the stream goes on, and when it ends.
private func checkWait(_ point: WaitPoint, _ window: MediaWindow) {
    var window = window
    let start = window
    do throws(HLSError) {
        if window.isInterrupted {
            try window.begin(MediaFormat(initialization: ByteBuffer(string: "init"), codecs: "avc1.64001f", hasVideo: true), nowMs: 6_000)
        }
        for index in 0..<60 where !window.isSatisfied(point) {
            try window.append(Windows.part(index % 10 == 0), nowMs: 6_000 + Int64(index) * 200)
        }
    } catch {
        fatalError("\(error)")
    }
    expect(window.isSatisfied(point), "\(point) is not reached in 12 s")
    window = start
    window.end(nowMs: 6_000)
    expect(window.isSatisfied(point) || !window.isReady, "\(point) is waited for after the end")
}

private func check(name: String, _ window: MediaWindow) {
    guard case .found(let resource) = window.resource(named: name) else { return }
    expect(resource.byteCount > 0 && !resource.contentType.isEmpty, "an empty resource")
    expect(name.hasPrefix("e-") && name.utf8.count < 16, "found under \(name)")
}
