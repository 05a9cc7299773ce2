import Foundation
import TestSupport
import Testing

@testable import Access

/// QR codes that a phone's camera can read: zbar reads them here, from PNG and SVG.
@Suite struct QRCodeTests {
    static let short = "rtmp://127.0.0.1:1935/live/cam1?txSecret=f85a2ab363fe4deaffef9754d79da6fe&txTime=5C271099"
    /// A URL of the length that a token gives it.
    static let long = "rtmps://live.example.com/live/room1?token=\(String(repeating: "aZ09-_.", count: 60))"

    @Test(arguments: [short, long, "a", "ünïcode ☃"]) func picturesAreRead(_ text: String) async throws {
        let code = try QRCode(text)
        try await Fixture.withDirectory { directory in
            let png = directory.appendingPathComponent("code.png")
            for size in [1, 3, 8] {
                try Data(code.png(moduleSize: size)).write(to: png)
                // One pixel per module is meant for programs, not for cameras.
                if size > 1 { #expect(try await QRReader.read(png) == text, "\(size) pixels a module") }
            }
            let svg = directory.appendingPathComponent("code.svg")
            try code.svg(moduleSize: 8).write(to: svg, atomically: true, encoding: .utf8)
            let drawn = directory.appendingPathComponent("drawn.png")
            let made = try await ClientProcess.run(["rsvg-convert", "-o", drawn.path, svg.path])
            #expect(made.status == 0, "\(made.errors)")
            #expect(try await QRReader.read(drawn) == text)
            // A photograph is smaller, grey and tilted.
            let photo = directory.appendingPathComponent("photo.png")
            let taken = try await ClientProcess.run([
                "ffmpeg", "-v", "error", "-i", png.path, "-vf",
                "format=gray,pad=iw*2:ih*2:(ow-iw)/2:(oh-ih)/2:color=gray,rotate=0.15:fillcolor=gray,scale=900:-1,boxblur=1,noise=alls=12",
                photo.path,
            ])
            #expect(taken.status == 0, "\(taken.errors)")
            #expect(try await QRReader.read(photo) == text)
        }
    }

    /// ffmpeg reads the picture's size and depth and accepts its checksums.
    @Test func thePNGIsWellFormed() async throws {
        let code = try QRCode(Self.short)
        try await Fixture.withDirectory { directory in
            let file = directory.appendingPathComponent("code.png")
            try Data(code.png(moduleSize: 3)).write(to: file)
            let probe = try await ClientProcess.run([
                "ffprobe", "-v", "error", "-show_entries", "stream=width,height,pix_fmt", "-of", "csv=p=0", file.path,
            ])
            #expect(probe.errors.isEmpty, "\(probe.errors)")
            #expect(probe.text.hasPrefix("\(code.fullWidth * 3),\(code.fullWidth * 3),mono"), "\(probe.text)")
        }
    }

    @Test func aroundTheCodeAllIsLight() throws {
        let code = try QRCode(Self.short)
        #expect(code.fullWidth == code.width + 8)
        for at in 0..<code.fullWidth {
            for edge in [0, 1, 2, 3, code.fullWidth - 4, code.fullWidth - 1] {
                #expect(!code.isDark(column: at, row: edge) && !code.isDark(column: edge, row: at))
            }
        }
        // The finder pattern's corner.
        #expect(code.isDark(column: 4, row: 4) && !code.isDark(column: 5, row: 5) && code.isDark(column: 6, row: 6))
    }

    @Test func whatDoesNotFitIsRefused() throws {
        _ = try QRCode(String(repeating: "x", count: 2_331))
        #expect(throws: QRCode.TooLong.self) { try QRCode(String(repeating: "x", count: 2_332)) }
        #expect(throws: QRCode.TooLong.self) { try QRCode("a\0b") }
        #expect(throws: QRCode.TooLong.self) { try QRCode("") }
    }
}
