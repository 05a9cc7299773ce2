import Testing

@testable import Support

/// Where server and commands look for the data when nothing names a folder.
@Suite struct DataDirectoryTests {
    private static let here = "./earshot-data"
    private static let service = "/var/lib/earshot"
    private static let mine = "/home/ann/.local/share/earshot"

    private static func standard(
        isRoot: Bool = false, home: String? = "/home/ann", dataHome: String? = nil, there: String...
    ) -> String {
        DataDirectory.standard(isRoot: isRoot, home: home, dataHome: dataHome) { there.contains($0) }
    }

    @Test func whatIsThereIsTaken() {
        #expect(Self.standard(there: Self.here, Self.service, Self.mine) == Self.here)
        #expect(Self.standard(there: Self.service, Self.mine) == Self.service)
        #expect(Self.standard(there: Self.mine) == Self.mine)
        #expect(Self.standard(isRoot: true, home: "/root", there: Self.here) == Self.here)
        #expect(Self.standard(isRoot: true, home: "/root", there: "/root/.local/share/earshot") == "/root/.local/share/earshot")
    }

    @Test func otherwiseOneIsMade() {
        #expect(Self.standard() == Self.mine)
        #expect(Self.standard(dataHome: "/data/ann") == "/data/ann/earshot")
        // The specification of base directories calls relative ones invalid.
        #expect(Self.standard(dataHome: "data") == Self.mine)
        #expect(Self.standard(isRoot: true, home: "/root") == Self.service)
        for home in [nil, "", "/", "ann"] { #expect(Self.standard(home: home) == Self.here) }
    }
}
