import Foundation
import NIOCore
import Testing

@testable import HTTPServer

/// The parts of HTTP/2 that are plain values.
@Suite struct HTTP2FormTests {
    private static func read(_ pieces: [[UInt8]]) -> (body: [UInt8], ends: Int, isBroken: Bool) {
        var reader = ChunkReader()
        var (body, ends): ([UInt8], Int) = ([], 0)
        for piece in pieces {
            var buffer = ByteBuffer(bytes: piece)
            while let found = reader.next(&buffer) {
                switch found {
                case .bytes(let bytes): body += bytes.readableBytesView
                case .end: ends += 1
                case .broken: return (body, ends, true)
                }
            }
        }
        return (body, ends, false)
    }

    @Test func chunksHoweverTheyAreCut() {
        let long = [UInt8](repeating: 7, count: 300)
        let whole = Array("3\r\nabc\r\n12C\r\n".utf8) + long + Array("\r\n1\r\n\n\r\n0\r\n\r\n".utf8)
        let expected = Array("abc".utf8) + long + [10]
        for cut in 0...whole.count {
            let read = Self.read([Array(whole[..<cut]), Array(whole[cut...])])
            #expect(read.body == expected && read.ends == 1 && !read.isBroken, "cut at \(cut)")
        }
        let single = Self.read(whole.map { [$0] })
        #expect(single.body == expected && single.ends == 1)
    }

    @Test(arguments: ["x\r\n", "\r\n", "123456789\r\n", "3\rabc", "3;a=b\r\nabc\r\n"]) func whatIsNoChunk(_ text: String) {
        #expect(Self.read([Array(text.utf8)]).isBroken)
    }

    @Test func nothingAfterTheEnd() {
        let read = Self.read([Array("1\r\na\r\n0\r\n\r\n3\r\nabc\r\n".utf8), Array("1\r\na\r\n".utf8)])
        #expect(read.body == Array("a".utf8) && read.ends == 1 && !read.isBroken)
    }

    private static let limits: HTTPLimits = {
        var limits = HTTPLimits()
        (limits.headMs, limits.idleMs) = (100, 1_000)
        return limits
    }()

    @Test func idleConnectionsEnd() {
        var state = HTTP2ConnectionState(limits: Self.limits, openedMs: 0)
        #expect(state.sweep(nowMs: 99) == .nothing)
        state.streamOpened(1)
        #expect(state.sweep(nowMs: 5_000) == .nothing, "a stream is open")
        #expect(state.streamClosed(nowMs: 5_000) == .nothing)
        #expect(state.sweep(nowMs: 5_999) == .nothing)
        #expect(state.sweep(nowMs: 6_000) == .goAwayAndClose(last: 1))
        #expect(state.sweep(nowMs: 6_000 + HTTP2Limits.drainMs - 1) == .nothing)
        #expect(state.sweep(nowMs: 6_000 + HTTP2Limits.drainMs) == .cut)
        #expect(state.phase == .cut)
    }

    @Test func silentConnectionsEnd() {
        var state = HTTP2ConnectionState(limits: Self.limits, openedMs: 50)
        #expect(state.sweep(nowMs: 149) == .nothing)
        #expect(state.sweep(nowMs: 150) == .goAwayAndClose(last: 0))
    }

    @Test func goingWithStreams() {
        var state = HTTP2ConnectionState(limits: Self.limits, openedMs: 0)
        state.streamOpened(1)
        state.streamOpened(3)
        #expect(state.quiesce(nowMs: 10) == .announce)
        #expect(state.quiesce(nowMs: 10) == .nothing)
        state.streamOpened(5)
        #expect(state.announcementConfirmed(nowMs: 20) == .goAway(last: 5))
        #expect(state.announcementConfirmed(nowMs: 20) == .nothing)
        #expect(state.streamClosed(nowMs: 30) == .nothing)
        #expect(state.streamClosed(nowMs: 30) == .nothing)
        #expect(state.streamClosed(nowMs: 30) == .close)
    }

    @Test func goingWithoutAnybodyWhoListens() {
        var state = HTTP2ConnectionState(limits: Self.limits, openedMs: 0)
        state.streamOpened(1)
        #expect(state.quiesce(nowMs: 0) == .announce)
        #expect(state.sweep(nowMs: HTTP2Limits.announceMs) == .goAway(last: 1))
        #expect(state.sweep(nowMs: HTTP2Limits.leaveMs - 1) == .nothing)
        #expect(state.sweep(nowMs: HTTP2Limits.leaveMs) == .cut)
        #expect(state.streamClosed(nowMs: HTTP2Limits.leaveMs) == .nothing)
        var idle = HTTP2ConnectionState(limits: Self.limits, openedMs: 0)
        idle.streamOpened(1)
        #expect(idle.streamClosed(nowMs: 0) == .nothing)
        #expect(idle.quiesce(nowMs: 0) == .goAwayAndClose(last: 1))
    }

    @Test func aFirstRequestMayBeOnItsWay() {
        var state = HTTP2ConnectionState(limits: Self.limits, openedMs: 0)
        #expect(state.quiesce(nowMs: 0) == .announce)
        var silent = state
        state.streamOpened(1)
        #expect(state.announcementConfirmed(nowMs: 20) == .goAway(last: 1))
        #expect(state.streamClosed(nowMs: 30) == .close)
        #expect(silent.announcementConfirmed(nowMs: 20) == .goAwayAndClose(last: 0))
    }

    @Test func brokenConnectionsAreClosedOnce() {
        var state = HTTP2ConnectionState(limits: Self.limits, openedMs: 0)
        state.streamOpened(1)
        #expect(state.broken(nowMs: 0) == .close)
        #expect(state.broken(nowMs: 0) == .nothing)
        #expect(state.quiesce(nowMs: 0) == .nothing)
        #expect(state.sweep(nowMs: HTTP2Limits.brokenMs) == .cut)
    }
}
