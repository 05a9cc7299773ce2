import EarshotServer
import Foundation
import NIOCore
import Rooms
import Support
import Testing

@testable import Console
@testable import ControlAPI
@testable import HTTPAPI
@testable import HTTPServer

/// The console's files as a browser gets them.
@Suite struct ConsoleAssetTests {
    private static let root = URL(fileURLWithPath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
        .deletingLastPathComponent()
    private static let folder = root.appendingPathComponent("Sources/Console/Assets")

    private static func text(_ name: String) throws -> String {
        try String(contentsOf: Self.folder.appendingPathComponent(name), encoding: .utf8)
    }

    private static var scripts: [String] {
        get throws { try FileManager.default.contentsOfDirectory(atPath: Self.folder.path).filter { $0.hasSuffix(".js") } }
    }

    /// A file that nobody added to the program would be missing in the browser only.
    @Test func everyFileIsInTheProgram() throws {
        let files = try FileManager.default.contentsOfDirectory(atPath: Self.folder.path)
        #expect(ConsoleAsset.all.count == files.count, "assets.c names them")
        for file in files {
            let asset = try #require(ConsoleAsset.all[file == "index.html" ? "/" : "/console/\(file)"], "\(file)")
            #expect(Data(asset.bytes.readableBytesView) == (try Data(contentsOf: Self.folder.appendingPathComponent(file))), "\(file)")
            #expect(asset.type != "application/octet-stream", "\(file)")
        }
        var packed = 0
        for asset in ConsoleAsset.all.values { packed += try #require(Gzip.pack(asset.bytes)).readableBytes }
        // As the server sends them: comments and names cost little, so nothing needs to be minified.
        #expect(packed < 130_000, "what a browser loads stays small")
    }

    /// Text from devices and apps becomes text nodes only; nothing comes from elsewhere.
    @Test func nothingBecomesMarkup() throws {
        for name in try Self.scripts {
            let text = try Self.text(name)
            for word in [
                "innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval(", "new Function", "localStorage.setItem('token",
            ] {
                #expect(!text.contains(word), "\(name) has \(word)")
            }
            #expect(!text.contains("http://") || name == "dom.js", "\(name) names another site")
            #expect(!text.contains("https://"), "\(name) names another site")
        }
        let page = try Self.text("index.html")
        #expect(!page.contains("onload=") && !page.contains("<style") && !page.contains("<script>"), "the policy forbids inline code")
    }

    /// The pages escape the characters that the server's other texts for people escape, but for line ends and tabs.
    @Test func unsafeCharactersAreTheServers() throws {
        let line = try #require(try Self.text("dom.js").split(separator: "\n").first { $0.hasPrefix("const unsafe = /[") })
        var escaped: Set<UInt32> = [0x09, 0x0A]
        for match in line.matches(of: /\\u([0-9a-f]{4})(?:-\\u([0-9a-f]{4}))?/) {
            let first = try #require(UInt32(match.1, radix: 16))
            escaped.formUnion(first...(try match.2.map { try #require(UInt32($0, radix: 16)) } ?? first))
        }
        let unsafe = (UInt32(0)...0x10FFFF).filter { Unicode.Scalar($0).map(ShownText.isUnsafe) ?? false }
        #expect(escaped == Set(unsafe))
    }

    @Test func everyImportExists() throws {
        let scripts = try Self.scripts
        for name in scripts {
            for match in try Self.text(name).matches(of: /(?:from|import\() ?'\.\/([\w-]+\.js)'/) {
                #expect(scripts.contains(String(match.1)), "\(name) imports \(match.1)")
            }
        }
    }

    /// Buttons are offered by this table, so it must say what the server asks for.
    @Test func rightsAreTheServers() throws {
        let roles = Dictionary(uniqueKeysWithValues: APIRoute.all.map { ($0.name, $0.role?.rawValue) })
        let whole = Set(APIRoute.all.filter { $0.reach == .server }.map(\.name))
        let own: Set = ["getStream", "dropStream", "recordRoom"]
        let matches = try Self.text("rights.js").matches(of: /(\w+): '(\w+)([*+]?)'/)
        #expect(matches.count > 20)
        for match in matches {
            #expect(roles[String(match.1)] == String(match.2), "\(match.1)")
            #expect(whole.contains(String(match.1)) == (match.3 == "*") && own.contains(String(match.1)) == (match.3 == "+"), "\(match.1)")
        }
        for name in try Self.scripts where name != "rights.js" {
            for match in try Self.text(name).matches(of: /rights\.(?!js)(\w+)/) {
                #expect(matches.contains { $0.1 == match.1 }, "\(name) asks for \(match.1)")
            }
        }
    }

    /// Every code of the server has a text, and every text its Chinese.
    @Test func everyCodeHasWords() throws {
        let codes = try Self.text("codes.js")
        for operation in APIRoute.all where operation.isAudited { #expect(codes.contains(" \(operation.name): '"), "\(operation.name)") }
        for reason in CloseReason.allCases { #expect(codes.contains(" \(reason.rawValue): '"), "\(reason)") }
        for reason in StateReason.allCases { #expect(codes.contains(" \(reason.rawValue): '"), "\(reason)") }
        for reason in RoomDeadline.Reason.allCases { #expect(codes.contains(" \(reason.rawValue): '"), "\(reason)") }
        for reason in RecordingEnd.allCases { #expect(codes.contains(" \(reason.rawValue): '"), "\(reason)") }
        // A setting's name says what is limited.
        for limit in Metrics.limitNames where !limit.contains(".") { #expect(codes.contains(" \(limit): '"), "\(limit)") }
        let events = try Self.text("words.js")
        for kind in RoomEvent.Kind.allCases { #expect(events.contains("'\(kind.rawValue)': '"), "\(kind)") }
        let chinese = try Self.text("chinese.js")
        let all = [codes, events].flatMap { $0.matches(of: /([\w.]+)'?: '([^']+)'/) }
        let words = all.filter { $0.1 != "class" }.map { String($0.2) }
        #expect(words.count > 130)
        for text in words { #expect(Self.isTranslated(text, in: chinese), "\(text)") }
    }

    private static func isTranslated(_ text: String, in chinese: String) -> Bool {
        chinese.contains("'\(text)':") || chinese.contains(" \(text): '")
    }

    /// Every text that a page shows has its Chinese.
    @Test func everyTextIsTranslated() throws {
        let chinese = try Self.text("chinese.js")
        var missing: Set<String> = []
        for name in try Self.scripts where name != "chinese.js" {
            for match in try Self.text(name).matches(of: /\bt\('([^']+)'/) {
                let text = String(match.1)
                if !Self.isTranslated(text, in: chinese) {
                    missing.insert(text)
                }
            }
        }
        #expect(missing.isEmpty, "\(missing.sorted())")
    }
}
