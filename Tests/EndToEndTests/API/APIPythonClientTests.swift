import EarshotServer
import Foundation
import Rooms
import TestSupport
import Testing

@testable import ControlAPI
@testable import HTTPAPI

/// The client that PyPI's openapi-python-client generates from the API's document.
@Suite struct APIPythonClientTests {
    private static let binaries = ["image/jpeg", "image/png", "image/svg+xml", "video/mp4"]
    private static let package = PythonPackage(requirement: "openapi-python-client==0.29.1")

    /// Reads the document's examples with the generated classes. Prints what is wrong.
    private static let script = #"""
        import datetime, json, pathlib, sys
        from earshot_client import models

        def plain(value):
            """The value with times as times: each may be written in several ways."""
            if isinstance(value, dict):
                return {name: plain(member) for name, member in value.items()}
            if isinstance(value, list):
                return [plain(member) for member in value]
            try:
                return datetime.datetime.fromisoformat(value) if isinstance(value, str) and "T" in value else value
            except ValueError:
                return value

        document = json.loads(pathlib.Path("openapi.json").read_text())
        problems = []
        operations = [call["operationId"] for path in document["paths"].values() for call in path.values()]
        modules = [file for file in pathlib.Path("client/earshot_client/api").rglob("*.py") if file.name != "__init__.py"]
        if len(modules) != len(operations):
            problems.append(f"{len(modules)} modules for {len(operations)} operations")
        schemas = document["components"]["schemas"]
        for name, schema in schemas.items():
            if "properties" in schema and not hasattr(models, name):
                problems.append(f"{name} has no class")
        examples = document["webhooks"]["event"]["post"]["requestBody"]["content"]["application/json"]["examples"]
        events = []
        for kind, example in examples.items():
            delivery = example["value"]
            name = schemas["WebhookEvent"]["discriminator"]["mapping"][kind].rsplit("/", 1)[-1]
            read = getattr(models, name).from_dict(delivery)
            if plain(read.to_dict()) != plain(delivery) or type(read.data).__name__ != schemas[name]["properties"]["data"]["$ref"].rsplit("/", 1)[-1]:
                problems.append(f"{kind} was read as {read}")
            events.append({key: value for key, value in delivery.items() if key not in ("idempotencyKey", "attempt")})
        answer = {"last": 1, "isComplete": True, "list": events}
        read = models.EventList.from_dict(answer)
        for event, kind in zip(read.list_, examples):
            name = schemas["Event"]["discriminator"]["mapping"][kind].rsplit("/", 1)[-1]
            if type(event).__name__ != name:
                problems.append(f"{kind} was told to be {type(event).__name__}")
        if plain(read.to_dict()) != plain(answer):
            problems.append("the list is written differently from how it was read")
        print(len(operations), len(examples))
        sys.exit("\n".join(problems) or 0)
        """#

    @Test func theClientHasEveryCallAndTellsKindsApart() async throws {
        let folder = try await Self.package.folder()
        try await Fixture.withDirectory { directory in
            try Data(OpenAPIDocument.bytes).write(to: directory.appendingPathComponent("openapi.json"))
            // Formatting is not tested; the generator takes bodies other than text and JSON for bytes only if its settings say so.
            let settings =
                "post_hooks: []\ncontent_type_overrides:\n" + Self.binaries.map { "  \($0): application/octet-stream\n" }.joined()
            try Data(settings.utf8).write(to: directory.appendingPathComponent("config.yaml"))
            try Data(Self.script.utf8).write(to: directory.appendingPathComponent("read.py"))
            let generate = [
                "--chdir=\(directory.path)", "PYTHONPATH=\(folder)", "NO_COLOR=1", "python3",
                "\(folder)/bin/openapi-python-client", "generate", "--path", "openapi.json", "--output-path", "client", "--config",
                "config.yaml", "--fail-on-warning",
            ]
            let generated = try await ClientProcess.run(generate, within: 240)
            // It leaves out what it cannot make, with a warning.
            #expect(generated.status == 0, "\(generated.text)\(generated.errors)")
            let read = try await ClientProcess.run(
                ["--chdir=\(directory.path)", "PYTHONPATH=client:\(folder)", "python3", "read.py"], within: 120)
            #expect(read.status == 0, "\(read.errors)")
            #expect(read.text == "\(APIRoute.all.count) \(RoomEvent.Kind.allCases.count)\n", "\(read.text)")
        }
    }
}
